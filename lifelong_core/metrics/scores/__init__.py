"""Metrics of predicted probabilities.

- `ranking`: ROC and precision-recall curves, AUROC, average precision
- `scoring_rules`: Brier score and negative log likelihood
- `at_target`, `operating_points`: cut-off for a target value, and a metric at it
- `samples`: checked inputs, probabilities for other class shares, large arrays in parts
"""
