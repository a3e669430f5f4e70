"""Computation of any metrics in one call.

- `compute_metrics`: the call
- `inputs`, `workbench`: checked inputs, and intermediate results that metrics share
- `evaluation`: the function of each acronym
- `invalid_outputs`: samples without a valid output
"""
