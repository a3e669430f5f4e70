"""From a recommendation and labelled samples to the quality of a model.

- `validation_settings`, `preparation`: what models that are validated together share; what is evaluated
- `validate`, `validate_one`, `result`: one model
- `compare`, `comparison`, `ranked_metrics`, `model_ranks`: several; `paired`, `differences`: two
- `outputs`, `decisions`: checked outputs of a model, and the decisions that are judged
- `values`: metrics with confidence intervals; `subgroup_results`: the same by subgroup
- `uncertainty`: uncertainty-aware scores of two classes
- `acceptance`, `warnings`: thresholds; what limits the result
- `displays`, `curves`: confusion matrix and curves
"""
