"""Values of recommended metrics with their uncertainty.

- `metric_value`: the value as a document
- `evaluation`, `metric_values`, `parts`: from a metric and samples to values, by class and in all
- `intervals`, `resamples`, `resampled_metrics`: confidence intervals by resampling
"""
