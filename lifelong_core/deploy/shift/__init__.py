"""Shifts of the prevalence: tests and change points.

- `shift_test`: tests against the prevalence that the head assumes, on one window or on the sequential evidence
- `size`: the size of a shift with its interval
- `evidence`: evidence over many cycles, valid for any number of looks: its state, and the update with a bucket
- `betting`: sums over a bucket; bets against "the mean score lies in the zone"
- `reference`: mean scores under the prevalence that the head assumes
- `change_points`: times of changes within a window. Its steps: `ordered_window` (input), `partition` (first segments),
  `location` (time of each change), `fluctuation` (temporary changes, rhythms)
"""
