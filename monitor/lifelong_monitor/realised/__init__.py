"""Realised performance, where labels have arrived.

- `answered_predictions`: probabilities as they were answered
- `performance`, `recommended_metrics`: accuracy, cost and the recommended metrics
- `metric_inputs`: the predictions behind them, with bootstrap resamples
- `judged_window`, `labelling_plan`: performance in the window of a labelling plan, with the labels that have arrived
- `labelled_figures`, `periods`: accuracy and cost with intervals, beside estimates by day and by head version
- `label_checks`: calibration drift, and selection of the labelled predictions
- `comparison`: computes and stores all of it for a population
- `affected_decisions`: decisions that a swap changes
"""
