"""Calibration of logits on a labelled set.

- `affine`: temperature and bias, weighted for a target prevalence
- `matrix_scaling`: logistic regression on the logits, shrunk towards temperature scaling
- `choice`: the best of both by cross-validation
- `cross_entropy`: the weighted loss with its derivatives
- `held_out`: output of a head for calibration samples that it was not fitted on
- `acceptance`: is a calibration set good enough?
"""
