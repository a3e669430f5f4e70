"""Window summaries of each UTC hour of a population.

- `summaries`: the public repository
- `folding`: computes summaries from rows of the log, and writes them
- `rows`, `windows`: rows and single summaries read, and windows of many hours
- `check`: comparison of the summaries with the rows
"""
