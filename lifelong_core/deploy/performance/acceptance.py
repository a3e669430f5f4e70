"""Thresholds that a metric has to reach, and whether its estimate does."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric

Acceptance: TypeAlias = Literal["accepted", "at_risk", "missed"]
"""`accepted`: the value reaches the threshold; `at_risk`: the value does not, but its interval does; `missed`: the
whole interval is on the wrong side"""


@dataclass(frozen=True)
class PerformanceThreshold:
    """The value that a metric has to reach."""

    value: float
    is_minimum: bool
    """True: at least so large, because higher values are better; False: at most"""

    def judge(self, metric: EstimatedMetric) -> Acceptance | None:
        """Compare an estimated metric with the threshold; None: it is undefined.

        A metric without a defined interval is at most at risk.

        Examples:
            >>> accuracy = EstimatedMetric(0.78, 0.74, 0.82)
            >>> [PerformanceThreshold(value, is_minimum=True).judge(accuracy) for value in (0.75, 0.8, 0.85)]
            ['accepted', 'at_risk', 'missed']
            >>> cost = EstimatedMetric(0.5, 0.4, 0.6)
            >>> [PerformanceThreshold(value, is_minimum=False).judge(cost) for value in (0.5, 0.45, 0.3)]
            ['accepted', 'at_risk', 'missed']
        """
        if math.isnan(metric.value):
            return None
        sign = 1 if self.is_minimum else -1
        if sign * metric.value >= sign * self.value:
            return "accepted"
        better_end = metric.high if self.is_minimum else metric.low
        return "missed" if sign * better_end < sign * self.value else "at_risk"


@dataclass(frozen=True)
class JudgedMetric:
    """An estimated metric beside its threshold."""

    name: str
    """for people, such as TPR of malignant"""
    metric: EstimatedMetric
    threshold: PerformanceThreshold

    def describe(self) -> str:
        """The figure with interval and threshold.

        Examples:
            >>> threshold = PerformanceThreshold(0.8, is_minimum=True)
            >>> JudgedMetric("AC", EstimatedMetric(0.71, 0.66, 0.76), threshold).describe()
            'AC 0.71 (0.66 to 0.76), at least 0.8'
        """
        value, low, high = (f"{number:.3g}" for number in self.metric)
        bound = "at least" if self.threshold.is_minimum else "at most"
        return f"{self.name} {value} ({low} to {high}), {bound} {self.threshold.value:.6g}"
