"""Calibration of logits on a labelled set.

- `affine`: temperature and bias, weighted for a target prevalence
- `matrix_scaling`: logistic regression on the logits, shrunk towards temperature scaling
- `choice`: the better of the two by cross-validation
- `cross_entropy`: the weighted loss with its derivatives
"""
