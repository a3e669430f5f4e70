"""One cycle over one population.

- `cycle`: load, judge, record
- `subject`, `context`, `traffic`: model, head and circumstances
- `window`, `new_samples`, `summaries`, `quantifiers`: the data and the fitted quantifier
- `reports`, `replay`, `text`: the recorded report, its replay, its line in the log
"""
