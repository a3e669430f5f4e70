"""Metrics of predicted probabilities.

- `ranking`: ROC and precision-recall curves, AUROC, average precision
- `scoring_rules`, `weighted_scores`: Brier score and negative log likelihood, also of weighted samples
- `prior_correction`: probabilities for other class shares
- `at_target`, `operating_points`: cut-off for a target value, and a metric at it
- `labelled_probabilities`, `values`: checked inputs; numbers per sample
"""
