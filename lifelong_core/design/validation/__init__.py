"""From a recommendation and labelled samples to the quality of a model.

- `validate`, `result`: one model; `compare`, `comparison`, `model_ranks`: several; `paired`, `differences`: of two
- `outputs`: checked outputs of a model
- `values`: metrics with confidence intervals; `subgroup_results`: the same by subgroup
- `uncertainty`: uncertainty-aware scores of two classes
- `acceptance`, `warnings`: thresholds; what limits the result
- `displays`, `curves`: confusion matrix and curves
"""
