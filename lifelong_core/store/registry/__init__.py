"""Tasks, models and environments that workers serve, under one revision number.

- `registry`, `changes`: the registry, and waiting for its next revision
- `cache`: the registry on the local disk
- `tasks`, `models`, `model_removal`, `environments`: its parts
- `heartbeats`, `serving`: heartbeats of processes, and how far a model is served
- `sick_processes`: what is wrong with workers and monitors, as sentences
"""
