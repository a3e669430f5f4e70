"""The label-shift assumption: did only the prevalence change? (thesis Def. 6.4; section 6.1.3, assumption i)

- `assumption_test`: is the window a mix of the calibration classes?
- `features`, `class_spread`: what is compared, and how far it may differ by chance
- `drift`: detectors of drifts that occur in practice
- `result`, `disagreement`: the result, and its explanation
"""
