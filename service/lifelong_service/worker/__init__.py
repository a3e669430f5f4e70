"""One serving process.

- `worker`: wiring, start and stop
- `snapshot`, `registry_poller`: what it serves at one moment; the thread that follows the registry
- `heartbeat`, `periodic_tasks`, `audit_tasks`: periodic work
- `draining`: the end, without lost requests
"""
