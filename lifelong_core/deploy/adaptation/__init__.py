"""The five steps of adaptation as one pure function (thesis section 6.1.3).

- `adapt`: from a window of logits to keep, swap or refuse
- `policy`, `context`: settings of a cycle; its circumstances, such as labels
- `report`, `reasons`: the result of a cycle and its explanation
- `windows`, `traffic`: forms of a window; senders and rates of its predictions
- `target_prevalence`: the prevalence that the candidate assumes; pooling of environments
- `findings`, `refit`: estimates of the window; the candidate and its gains; `gain_reasons`: for or against a swap
- `gain`, `rule_gain`: what a new head saves, by the expected cost or by the metric of its decision rule
- `affected_decisions`: decisions that a new head changes
- `retraining`: should another model be trained?
- `planning`: how many samples an estimate needs
"""
