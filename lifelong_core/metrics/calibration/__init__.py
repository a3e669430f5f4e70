"""Calibration errors.

- `binned`: in bins, or among equal predictions
- `kernel`, `weighted_kernel`: with kernels, also of weighted samples
"""
