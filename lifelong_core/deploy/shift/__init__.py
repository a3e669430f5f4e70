"""Shifts of the prevalence: tests and change points.

- `shift_test`: tests against the prevalence that the head assumes, on one window or on the sequential evidence
- `sequential`: evidence over many cycles, valid at any time
- `change_points`: times of changes within a window. Its steps: `ordered_window` (input), `partition` (first segments),
  `location` (time of each change), `fluctuation` (temporary changes, rhythms)
"""
