"""Labelling plans: which predictions of a window to label, and with what probability each was chosen.

- `plans`: writes and reads plans.
- `samples`: rows of the samples: written in batches, read with what is known of the predictions.
"""
