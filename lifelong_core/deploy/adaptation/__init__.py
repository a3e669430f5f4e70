"""The five steps of adaptation as one pure function (thesis section 6.1.3).

- `adapt`: from a window of logits to keep, swap or refuse
- `policy`, `context`: settings and circumstances of a cycle
- `report`, `reasons`, `rule_reasons`: the result of a cycle and its explanation
- `windows`, `traffic`: forms of a window; senders and rates of its predictions
- `target_prevalence`, `pooling`: the prevalence that the candidate assumes
- `findings`, `refit`, `worth`: what is known of the window, the candidate, and whether it is worth a swap
- `gain`, `rule_gain`: what a new head saves, by the expected cost or by the metric of its decision rule
- `affected_decisions`: which decisions it changes
- `retraining`, `expected_performance`: should another model be trained?
- `planning`: how many samples an estimate needs
"""
