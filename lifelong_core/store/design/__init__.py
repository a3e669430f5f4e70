"""Records of the design loop.

- `records`: their value types
- `interviews`: interviews with a revision
- `recommendations`: recommendations attached to tasks
- `effects`: the rule that a task has then, and heads that still decide otherwise
"""
