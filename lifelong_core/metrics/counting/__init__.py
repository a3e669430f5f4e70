"""Metrics of decisions.

- `confusion`: the confusion matrix and the counts of each class
- `one_versus_rest`, `multiclass`: metrics of one class, and of all classes
- `cost`: cost matrices; net benefit and decision curves
- `uncertainty_aware`: counts weighted by uncertainty; uncertainty from several outputs of a sample
- `stability`: agreement of two models
"""
