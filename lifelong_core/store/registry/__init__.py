"""What workers serve: tasks, models and environments, under one revision number.

- `registry`, `changes`: the registry, and waiting for its next revision
- `cache`, `documents`: the registry on the local disk, and as JSON
- `records`, `rows`: value types of its parts, and those from rows
- `tasks`, `models`, `model_removal`, `environments`: its parts
- `workers`, `monitors`, `serving`: running processes, and the heads that they serve
"""
