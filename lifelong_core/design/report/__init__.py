"""Validations and comparisons as one self-contained HTML page.

- `pages`: the pages; `tables`, `figures`, `forest`, `decisions`, `subgroups`, `uncertainty`: their parts
- `plots`: geometry of plots
- `basis`: samples, groups, costs and class shares behind values; `leaders`: the first models of a comparison
- `words`: numbers and answers as text
"""
