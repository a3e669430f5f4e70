"""Validations and comparisons as one self-contained HTML page.

- `pages`: the pages; `tables`, `figures`, `forest`, `subgroups`, `uncertainty`: their parts
- `plots`: geometry of plots
- `words`: numbers and answers as text
"""
