"""One serving process.

- `worker`, `wiring`: the parts of a worker, and how they are built
- `serving_state`, `registry_poller`, `snapshot_changes`: what is served now; the thread that follows the registry; what
  changes, as metrics and in the log
- `model_loader`: loads graphs; models that hang too often are not loaded
- `store_connection`, `group_keyring`: the store, which may open later; the key for hashes of groups
- `periodic_tasks`, `tasks`: threads of periodic tasks; registry cache, heartbeat, audit log
"""
