"""How good the decisions of a population were: estimates without labels beside the performance on labelled samples.

- `statements`: the comparison in words
- `realised`: accuracy and expected cost of labelled predictions
- `comparisons`: reads the estimates of cycles; stores the newest comparison of each population
"""
