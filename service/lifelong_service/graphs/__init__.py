"""ONNX graphs: checks before they are stored, and their execution.

- `classifier`, `loader`: a loaded graph; the thread that loads
- `providers`, `check_providers`: execution providers
- `check_graph`, `rules`, `self_contained`: the process that checks uploads, and its rules
- `run_limit`, `runtime_errors`: time limit of a run; errors without values of the graph
"""
