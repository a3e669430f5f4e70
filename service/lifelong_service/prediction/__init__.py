"""The path of one prediction, from its request to its logged answer.

- `requests`: an image or logits, and the model that answers
- `snapshot`, `routing`: the served registry and graphs; the model that answers: named, promoted, or a canary
- `micro_batcher`, `request_queue`: batches of waiting requests
- `batch_pipeline`, `batch_item`, `answers`: the stages of a batch: decode, infer, decide, log, answer
- `traced_pipeline`: the stages as spans, where tracing is on
- `idempotency`: repeated requests get their first answer
- `new_environments`: environments that predictions create
- `prediction_log`, `database_calls`, `spool_delivery`: the log, also during an outage of the database
- `shadow`: a candidate decides about answered images, for the log only
"""
