"""The five steps of adaptation as one pure function (thesis section 6.1.3).

- `adapt`: from a window of logits to keep, swap or refuse
- `policy`, `context`: settings and circumstances of a cycle
- `report`, `reasons`: the result of a cycle and its explanation
- `windows`, `traffic`: forms of a window; senders and rates of its predictions
- `target_prevalence`, `pooling`: the prevalence that the candidate assumes
- `gain`, `affected_decisions`: what a new head saves, and which decisions it changes
- `retraining`, `expected_performance`: should another model be trained?
- `planning`: how many samples an estimate needs
"""
