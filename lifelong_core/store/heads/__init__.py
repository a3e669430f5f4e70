"""Heads and the calibration sets that they are fitted on.

- `heads`, `rows`, `checks`: versions of heads
- `activations`, `pins`: which head is in force; heads that no cycle replaces
- `calibration_sets`: labelled logits
- `registration`, `refitting`: from a calibration set, or from new costs, to heads in force
"""
