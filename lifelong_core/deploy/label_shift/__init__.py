"""Tests of the label-shift assumption: only the prevalence changed (thesis Def. 6.4; section 6.1.3, assumption i).

- `assumption_test`: whether the window is a mix of the calibration classes
- `features`: features that are compared
- `drift`: spread of features by chance; detectors of drifts that occur in practice
- `result`: the result, and the disagreements that explain it
"""
