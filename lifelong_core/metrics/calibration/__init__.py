"""Calibration errors.

- `binned`: in bins, or among equal predictions
- `slope`: calibration slope and O:E ratio; `cost_loss`: the expected cost that miscalibration causes
- `reference`, `relabelled`: what perfectly calibrated predictions have by chance
- `kernel`, `density`, `weighted_kernel`: with kernels, also of weighted samples
"""
