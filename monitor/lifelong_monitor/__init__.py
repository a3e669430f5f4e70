"""The monitoring process: schedule, cycles, jobs, Prometheus exporter."""

import os

# Sums in one order, whatever the number of cores, so that a replay gives the same bits; and a cycle must not take the
# cores that serve. Before numpy is loaded.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
