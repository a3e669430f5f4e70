"""Metrics Reloaded as data: YAML files and their reader.

- `loader`: reads and checks the files
- `schema`, `conditions`: their form; values of metric parameters
"""
