"""Validations and comparisons as one self-contained HTML page.

- `pages`: the pages; `tables`, `figures`, `forest`, `sections`, `uncertainty`: their parts
- `plots`: geometry of plots
- `basis`: samples, groups, costs and class shares behind values
- `words`: numbers and answers as text
"""
