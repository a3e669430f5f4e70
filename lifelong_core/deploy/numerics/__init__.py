"""Numerical methods that the deploy loop shares.

- `simplex`, `newton`: optimisation on the simplex and in a box
- `rows`: affine scores, one-hot labels, sums of rows by class, group or cell
"""
