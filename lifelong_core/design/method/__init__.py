"""Metrics Reloaded as data: YAML files and their reader.

- `loader`: reads and checks the files
- `schema`, `conditions`, `parameters`: their form; values of metric parameters
- `checks`: what must hold of every version
"""
