"""Heads and the calibration sets that they are fitted on.

- `heads`, `rows`: versions of heads, and heads from rows
- `checks`: does a head fit its model, and a calibration set the preprocessing of its model?
- `outlook`: what the next cycles may do to a head in force, in words
- `activations`: history of the heads in force; pins of heads that no cycle replaces
- `calibration_sets`: labelled logits
- `registration`, `refitting`: from a calibration set, or from new costs, to heads in force
"""
