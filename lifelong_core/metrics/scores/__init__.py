"""Metrics of predicted probabilities.

- `ranking`: cut-offs of a score, ROC and precision-recall curves, AUROC, average precision
- `scoring_rules`: Brier score and negative log likelihood
- `at_target`: cut-off for a target value, and a metric at it
- `samples`: checked inputs, probabilities for other class shares, large arrays in parts
"""
