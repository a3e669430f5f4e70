"""The domain: metrics, the deploy loop and the store. Processes live in `lifelong_service` and `lifelong_monitor`."""
