"""Values of recommended metrics with their uncertainty.

- `samples`: labels and checked outputs of a model
- `metric_value`: the value as a document
- `evaluation`, `metric_values`, `parts`: from a metric and samples to values, by class and in all
- `calibration`: errors of calibrated predictions as a reference; slope and O:E ratio
- `by_group`, `class_mix`: means over groups; values at the class shares of use
- `intervals`, `resampled_metrics`: confidence intervals by resampling
"""
