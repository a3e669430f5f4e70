"""`lifelong feedback`: labels of logged predictions.

- `group`: the command and its sub-commands.
- `advise`: which predictions to label next, and the plans of this.
- `importing`: labels from a CSV file.
- `history`: every change of the label of a prediction.
- `plan_text`: a labelling plan as people read it.
"""
