"""Validations and comparisons as one self-contained HTML page.

- `pages`: the pages; `tables`, `figures`, `forest`, `decisions`, `subgroups`, `uncertainty`: their parts
- `plots`: geometry of plots
- `basis`: samples and groups behind values; `leaders`: the first models of a comparison
- `cost_words`: costs and class shares of a value in short words
- `words`: numbers and answers as text
"""
