"""From a problem fingerprint to recommended metrics.

- `engine`: `recommend` and `next_questions`
- `walk`: one pass through the method
- `document`: the recommendation as a value
- `explanation`, `parameters`: reasons; parameters of metrics
- `relations`: metrics that say much the same
- `views`, `labels`: what all surfaces show: metrics with their cards, labels that differ
"""
