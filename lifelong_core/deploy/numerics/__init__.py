"""Numerical methods that the deploy loop shares.

- `simplex`, `newton`: optimisation on the simplex and in a box
- `softmax`, `scientific`: softmax of scaled logits; typed functions of scipy
- `folds`, `grouping`: cross-fitting splits; rows by class, group or cell
"""
