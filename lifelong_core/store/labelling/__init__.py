"""Labelling plans: which predictions of a window to label, and with what probability each was chosen.

- `records`: plans and their samples as values.
- `plans`: writes and reads plans.
- `samples`: rows of the samples: written in batches, read with what is known of the predictions.
- `documents`: plans as JSON values and as CSV.
"""
