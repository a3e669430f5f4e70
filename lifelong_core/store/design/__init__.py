"""Records of the design loop.

- `records`: their value types
- `interviews`: interviews with a revision
- `recommendations`: recommendations attached to tasks
"""
