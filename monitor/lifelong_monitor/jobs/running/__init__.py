"""How a monitor runs jobs.

- `runner`, `lane`, `attempt`: all lanes; one lane, which claims jobs; one attempt at a job
- `process`, `outcome`, `redaction`: the subprocess, its outcome, and its last output without secrets
- `work`: the work of a kind in the subprocess, and its outcome
- `context`: progress, log and checkpoints of a running job
- `limits`, `metrics`: memory, disk and work folder; metrics of jobs
- `on_ray`: a job as a task of a Ray cluster
"""
