"""`lifelong feedback`: labels of logged predictions.

- `group`: the command and its sub-commands; every change of the label of a prediction.
- `advise`: which predictions to label next, and the plans of this.
- `importing`: labels from a CSV file.
"""
