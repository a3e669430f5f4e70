"""Realised performance, where labels have arrived.

- `answered_predictions`: probabilities as they were answered
- `performance`, `recommended_metrics`: accuracy, cost and the recommended metrics
- `metric_inputs`: the predictions behind them, with bootstrap resamples
- `judged_window`, `labelling_plan`: performance in the window of a labelling plan, with the labels that have arrived
- `affected_decisions`: decisions that a swap changes
"""
