"""The processes of the service.

- `launch`, `checks`: start, and the checks before it
- `supervisor`, `signals`, `draining`: the supervisor of the workers; SIGTERM and SIGINT; the end of a worker
- `metric_files`: files through which the workers share their metrics
"""
