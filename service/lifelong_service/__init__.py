"""The serving process: BentoML service, HTTP API, micro-batching."""
