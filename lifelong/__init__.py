"""Command line, demo, and the Python client of a service: `lifelong.Client`.

They start the processes, and import neither service nor monitor.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lifelong.client import AsyncClient, Client

# Sums in one order, whatever the number of cores, so that a replay gives the same bits; and products of small matrices
# take no other core. Before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__all__ = ["AsyncClient", "Client", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Client` and `AsyncClient`, imported when they are asked for."""
    if name in ("Client", "AsyncClient"):
        return getattr(import_module("lifelong.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
