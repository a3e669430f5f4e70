"""How good the decisions of a population were: estimates without labels beside the performance on labelled samples.

- `records`: the comparison of a population as a value and as a JSON document
- `statements`: the comparison in words, and as an answer of the HTTP API and the command line
- `figures`: figures of labelled predictions
- `comparisons`: reads the estimates of cycles; stores the newest comparison of each population
"""
