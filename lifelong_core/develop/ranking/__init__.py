"""From knowledge of other tasks to suggestions for this one.

- `suggestion`: the result: suggestions with intervals and evidence.
"""
