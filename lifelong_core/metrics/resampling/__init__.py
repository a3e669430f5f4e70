"""Uncertainty of metrics.

- `bootstrap`: resampled data sets; `weighted`: metrics of scores of many resampled data sets at once
- `intervals`: confidence intervals of a resampled statistic
- `aggregation`: hierarchical means and subgroups
"""
