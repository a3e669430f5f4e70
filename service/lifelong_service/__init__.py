"""The serving process: BentoML service, HTTP API, micro-batching."""

import lifelong_core  # noqa: F401 - switches telemetry off before any module here imports ONNX Runtime
