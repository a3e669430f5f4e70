"""Realised performance, where labels have arrived.

- `answered_predictions`: probabilities as they were answered
- `performance`, `recommended_metrics`: accuracy, cost and the recommended metrics
- `metric_inputs`: the predictions behind them, with bootstrap resamples
- `affected_decisions`: decisions that a swap changes
"""
