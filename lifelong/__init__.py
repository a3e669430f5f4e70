"""Command line and demo: start the processes, import neither service nor monitor."""

import os

# Sums in one order, whatever the number of cores, so that a replay gives the same bits; and products of small matrices
# take no other core. Before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
