"""Records as the JSON documents of answers.

- `registry`: tasks, models, calibration sets, heads, workers
- `design`: interviews, recommendations and jobs
"""
