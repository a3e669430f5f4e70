"""Uncertainty of metrics.

- `bootstrap`, `counting_metrics`: resampled data sets, and counting metrics of many confusion matrices at once
- `intervals`: confidence intervals of a resampled statistic
- `aggregation`: hierarchical means and subgroups
"""
