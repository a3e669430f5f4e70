"""Calibration errors.

- `binned`: in bins, or among equal predictions
- `kernel`, `density`: with kernels
- `slope`: calibration slope and O:E ratio; `cost_loss`: the expected cost that miscalibration causes
- `reference`: what perfectly calibrated predictions have by chance
"""
