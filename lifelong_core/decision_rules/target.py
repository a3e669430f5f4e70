"""What a decision rule demands of its metric."""

from dataclasses import dataclass
from math import isnan

import numpy as np

from lifelong_core.values.arrays import Floats, Mask

_ROUNDING = 1e-12
"""of sums of weights"""


@dataclass(frozen=True)
class Target:
    """A value that a metric has to reach: at most for the share of positive decisions (PPR), at least for the others.

    Examples:
        >>> str(Target("TPR", 0.9)), str(Target("PPR", 0.2))
        ('at least 0.9', 'at most 0.2')
        >>> Target("PPR", 0.2).reaches(np.array([0.1, 0.2, 0.3, np.nan])).tolist()
        [True, True, False, False]
        >>> Target("PPR", 0.2).is_missed(0.25, 0.3), Target("TPR", 0.9).is_missed(0.85, 0.95)
        (True, False)
    """

    metric: str
    """TPR, TNR, PPV, NPV or PPR"""
    value: float

    def __str__(self) -> str:
        """The target as words."""
        return f"{'at most' if self.sign < 0 else 'at least'} {self.value:g}"

    @property
    def sign(self) -> float:
        """-1 where less of the metric is better, else 1."""
        return -1.0 if self.metric == "PPR" else 1.0

    def reaches(self, values: float | Floats) -> Mask:
        """Whether values of the metric, (...), are on the right side, but for rounding; undefined ones are not."""
        return np.asarray(self.sign * np.asarray(values) >= self.sign * self.value - _ROUNDING)

    def is_kept(self, low: float, high: float) -> bool:
        """Whether a whole interval of the metric is on the right side; not where an end is undefined."""
        worst = high if self.sign < 0 else low
        return not (isnan(low) or isnan(high)) and self.sign * worst >= self.sign * self.value

    def is_missed(self, low: float, high: float) -> bool:
        """Whether a whole interval of the metric is on the wrong side; not where an end is undefined."""
        best = low if self.sign < 0 else high
        return not (isnan(low) or isnan(high)) and self.sign * best < self.sign * self.value

    def progress(self, value: float) -> float:
        """The metric, higher is better, as far as the target; an undefined one counts as the target."""
        end = self.sign * self.value
        return end if isnan(value) else min(self.sign * value, end)
