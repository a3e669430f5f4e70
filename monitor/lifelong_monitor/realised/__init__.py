"""Realised performance, where labels have arrived.

- `records`: its values
- `answered_predictions`: probabilities as they were answered; tests of calibration and of the choice of labels
- `performance`, `recommended_metrics`, `class_mixes`: accuracy, cost and the recommended metrics
- `metric_inputs`: the predictions behind them, with bootstrap resamples
- `judged_window`, `labelling_plan`: performance in the window of a labelling plan, with the labels that have arrived
- `rule_metric`: the metric of a head's decision rule; `periods`: estimated beside realised figures by day and by head
  version
- `comparison`: computes and stores all of it for a population
- `affected_decisions`: decisions that a swap changes
"""
