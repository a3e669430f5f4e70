"""Tasks, models and environments that workers serve, under one revision number.

- `registry`, `changes`: the registry, and waiting for its next revision
- `cache`, `documents`: the registry on the local disk, and as JSON
- `records`, `rows`: value types of its parts, and those from rows
- `tasks`, `models`, `model_removal`, `environments`: its parts
- `workers`, `monitors`, `serving`: heartbeats of processes, and how far a model is served
"""
