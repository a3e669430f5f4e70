"""Numerical methods that the deploy loop shares.

- `simplex`, `newton`: optimisation on the simplex and in a box
- `scores`: affine scores of logits, one-hot labels
- `folds`, `grouping`: cross-fitting splits; rows by class, group or cell
"""
