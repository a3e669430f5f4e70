"""Has the prevalence shifted, and when?

- `prevalence_shift`: tests against the prevalence that the head assumes, of one window or of gathered evidence.
- `change_points`: when the prevalence changed within a window. Its steps: `ordered_window`, the input;
  `efficient_scores` and `segmentation`, the first partition; `location`, the time of each change; `fluctuation` and
  `rhythm`, changes that come and go.
"""

from lifelong_core.deploy.shift.prevalence_shift import (
    ShiftTest,
    prevalence_shift_test,
    sequential_shift_test,
)

__all__ = ["ShiftTest", "prevalence_shift_test", "sequential_shift_test"]
