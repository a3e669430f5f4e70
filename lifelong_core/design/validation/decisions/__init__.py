"""Decisions that a validation judges: those given, or those of the rule that was answered (FP2.6).

- `cut_off_choice`: the cut-off of a target or optimum, chosen on other cases
- `decide`: the decisions of a rule
- `targets`: what the decisions reach
- `document`: all of it as a part of the result
"""
