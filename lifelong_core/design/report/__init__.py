"""Validations and comparisons as one self-contained HTML page.

- `pages`: the pages; `tables`, `figures`, `forest`, `decisions`, `subgroups`, `uncertainty`: their parts
- `plots`: geometry of plots
- `cost_words`: costs and class shares of a value in short words
- `words`: numbers and answers as text
"""
