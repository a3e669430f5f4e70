"""Has the prevalence shifted, and when?

- `prevalence_shift`: tests against the prevalence that the head assumes, of one window or of gathered evidence.
- `change_points`: when the prevalence changed within a window; `ordered_window` and `segmentation` are its parts.
"""

from lifelong_core.deploy.shift.prevalence_shift import (
    ShiftTest,
    prevalence_shift_test,
    sequential_shift_test,
)

__all__ = ["ShiftTest", "prevalence_shift_test", "sequential_shift_test"]
