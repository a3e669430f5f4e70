"""Window summaries of each UTC hour of a population.

- `summaries`: the public repository
- `folding`, `writing`: from rows of the log to summaries
- `rows`, `windows`: summaries read, one by one and as windows
- `check`: do the summaries equal the rows?
"""
