"""`lifelong feedback`: labels of logged predictions.

- `group`: the command and its sub-commands.
- `advise`: which predictions to label next, and the plans of this.
- `plan_text`: a labelling plan as people read it.
"""
