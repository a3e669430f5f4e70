"""One cycle over one population.

- `cycle`: load, judge, record
- `subject`, `context`, `traffic`: model, head and circumstances
- `window`, `new_samples`, `summaries`, `quantifiers`: the data and the fitted quantifier
- `wanted_estimates`, `recommended_estimates`: metrics that are estimated without labels, and their acceptance
- `reports`, `replay`, `text`: the recorded report, its replay, its line in the log
"""
