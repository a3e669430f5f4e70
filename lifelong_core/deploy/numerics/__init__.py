"""Numerical methods that the deploy loop shares.

- `simplex`: optimisation on the simplex, weights of mixtures and their derivatives
- `newton`: smooth, convex problems in a box; affine scores, one-hot labels, sums of rows by class, group or cell
"""
