"""Heads and the calibration sets that they are fitted on.

- `heads`, `checks`, `damaged_heads`: versions of heads
- `records`, `rows`: their value types, and those from rows
- `expectations`, `wording`: what their decision rules will reach, and both in words
- `activations`, `pins`: history of the heads in force; heads that no cycle replaces
- `calibration_sets`: labelled logits
- `preprocessing`: was a calibration set made with the preprocessing of its model?
- `registration`, `refitting`: from a calibration set, or from new costs, to heads in force
"""
