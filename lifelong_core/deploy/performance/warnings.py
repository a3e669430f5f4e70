"""Warnings of an estimate: limits that its intervals do not include. Judgement by acceptance thresholds."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.performance.by_prevalence import agree_on_accuracy
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric, PerformanceWarning
from lifelong_core.deploy.performance.unlabelled_window import JudgedHead

CODES: Mapping[str, str] = MappingProxyType(
    {
        "assumption_rejected": "the assumption test found a shift beyond the prevalence",
        "methods_disagree": "posteriors and rates give intervals of the accuracy that do not overlap",
        "logits_rescaled": "the window's logits have another scale than the calibration set's, and were rescaled",
        "calibration_limited": "the calibration set limits every estimate",
        "class_never_predicted": "a class is never predicted in the calibration set",
        "few_samples": "the window is small",
    }
)
"""Codes of the warnings, with their meaning."""

FEWEST_SAMPLES = 50
"""Effective samples of a window below which an estimate is warned of."""


def assumption_warning(test: AssumptionTest) -> Iterator[PerformanceWarning]:
    """Warning of a rejected assumption test."""
    if test.rejected:
        causes = "; ".join(one.text for one in test.disagreements[:3])
        yield PerformanceWarning(
            "assumption_rejected",
            f"More than the prevalence has changed (p = {test.p_value:.2g}), so the estimate may be wrong by more than"
            f" its interval{f': {causes}' if causes else ''}.",
        )


def size_warning(effective_samples: float) -> Iterator[PerformanceWarning]:
    """Warning of a small window."""
    if effective_samples < FEWEST_SAMPLES:
        yield PerformanceWarning(
            "few_samples",
            f"The window has {effective_samples:.0f} effective samples; intervals are reliable from"
            f" {FEWEST_SAMPLES} on.",
        )


def prevalence_warnings(judged: JudgedHead, method: str, confidence: float) -> Iterator[PerformanceWarning]:
    """Warnings of the methods that use the estimated prevalence."""
    match = judged.evidence.match(method)
    if match.factor != 1:
        yield PerformanceWarning(
            "logits_rescaled",
            f"The window's logits are {1 / match.factor:.2f} times as large as its prevalence explains; they were"
            " rescaled for the estimate.",
        )
    for caution in match.analysis.estimate.cautions:
        yield PerformanceWarning("calibration_limited", caution)
    if not agree_on_accuracy(judged, method, confidence):
        yield PerformanceWarning(
            "methods_disagree",
            "Posteriors and class-conditional rates give intervals of the accuracy that do not overlap: one of their"
            " assumptions fails.",
        )


def fallback_warning(classes: tuple[int, ...]) -> Iterator[PerformanceWarning]:
    """Warning of classes without a parameter of their own."""
    if classes:
        named = ", ".join(str(one) for one in classes[:10])
        yield PerformanceWarning(
            "class_never_predicted",
            f"Classes never predicted in the calibration set have the parameter of all classes: {named}"
            f"{', ...' if len(classes) > 10 else ''}.",
        )


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
