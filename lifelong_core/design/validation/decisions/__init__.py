"""Decisions that a validation judges: those given, or those of the rule that was answered (FP2.6).

- `decide`: the decisions of a rule; its cut-off, chosen on other cases
- `targets`: what the decisions reach, as a part of the result
"""
