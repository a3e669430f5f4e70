"""The path of one prediction, from its request to its logged answer.

- `requests`, `logits_bodies`: requests; reading logits
- `route`, `routing`: the model that answers: the named one, the promoted one, or a canary
- `shadow`, `shadow_images`: a shadow decides about answered images, for the log only
- `micro_batcher`, `batch_item`, `batch_pipeline`: batches: decode, infer, decide, log
- `idempotency`, `answered_requests`: repeated requests get their first answer
- `group_keyring`, `new_environments`: hashes of groups; environments that predictions create
- `prediction_log`, `database_calls`, `circuit_breaker`, `spool_delivery`: the log, also in a database outage
- `lookups`, `answers`: database look-ups of the event loop; the JSON answers
"""
