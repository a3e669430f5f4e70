"""One serving process.

- `worker`, `wiring`: start, readiness and end; the parts in the order of their dependencies
- `serving_state`, `snapshot`: the served registry and graphs
- `registry_poller`, `store_connection`, `model_loader`: read the registry, open the store, load graphs
- `periodic_tasks`, `heartbeat`, `audit_tasks`: periodic work
- `draining`: end of a worker without lost requests
"""
