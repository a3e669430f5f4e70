"""Metrics of predicted probabilities.

- `ranking`: ROC and precision-recall curves, AUROC, average precision
- `scoring_rules`, `weighted_scores`: Brier score and negative log likelihood, also of weighted samples
- `at_target`: metric at a target value of another one
- `labelled_probabilities`, `values`: checked inputs; numbers per sample
"""
