"""The serving process: BentoML service, HTTP API, micro-batching."""

import os

import lifelong_core  # noqa: F401 - switches telemetry off before any module here imports ONNX Runtime

# The workers share the cores; idle threads of numpy would take memory in each of them. Before numpy is loaded.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
