"""The path of one prediction, from its request to its logged answer.

- `requests`, `logits_bodies`, `images`: what is asked; reading logits and images
- `micro_batcher`, `batch_item`, `batch_pipeline`: batches: decode, infer, decide, log
- `group_keyring`: hashes of groups
- `prediction_log`, `circuit_breaker`, `spool_delivery`, `lookups`: the log, also while the database is away
- `answers`: the JSON answers
"""
