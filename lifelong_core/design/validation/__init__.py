"""From a recommendation and labelled samples to the quality of a model.

- `validate`, `result`: one model
- `compare`, `comparison`, `ranking`: several models; `paired`, `differences`: two
- `validation_settings`: settings that models share; the metrics and decisions that are evaluated
- `values`: checked samples, metrics with confidence intervals; `subgroup_results`: the same by subgroup
- `decisions`: the decisions that are judged; `uncertainty`: uncertainty-aware scores of two classes
- `acceptance`, `warnings`: thresholds; limits of the result
- `curves`: confusion matrix and curves
"""
