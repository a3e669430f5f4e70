"""Methods that estimate performance from the confidence of single predictions (Li et al. 2022).

- `base`: what every method does
"""
