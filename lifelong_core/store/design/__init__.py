"""Records of the design loop.

- `records`: their value types
- `interviews`: interviews with a revision
- `decision_rules`: the decision rule that answers ask for
- `recommendations`: recommendations attached to tasks
- `effects`: the rule that a task has then, and heads that still decide otherwise
"""
