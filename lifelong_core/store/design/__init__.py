"""Records of the design loop.

- `interviews`: interviews with a revision
- `recommendations`: recommendations attached to tasks
- `effects`: the rule that a task has then, and heads that still decide otherwise
"""
