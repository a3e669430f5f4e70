"""Values of recommended metrics with their uncertainty.

- `metric_value`: the value as a document
- `evaluation`, `metric_values`, `parts`: from a metric and samples to values, by class and in all
- `calibrated`: calibration errors of perfectly calibrated predictions as a reference
- `by_group`: the same within each group, and their mean
- `intervals`, `resamples`, `resampled_metrics`: confidence intervals by resampling
"""
