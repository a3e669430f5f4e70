"""The domain: metrics, the deploy loop and the store. Processes live in `lifelong_service` and `lifelong_monitor`."""

import os

# Every process of the product imports this package before libraries that report their use to their vendors:
# ONNX Runtime looks up an event host and stores a device id in ~/.cache, BentoML sends events.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("BENTOML_DO_NOT_TRACK", "True")
