"""The predictions of a window, with the decisions of one head and the estimated probabilities of their classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy import FittedQuantifier, LabeledLogits, PostProcessingHead
from lifelong_core.deploy.performance.estimate_performance import estimate_performance
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.deploy.performance.posteriors import posteriors_in_window
from lifelong_core.store.log.records import Window
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError

METRICS = ("AC", "EC")
"""Metrics that are estimated with the labels of a plan."""
CONFIDENCE = 0.95
"""Nominal coverage of their intervals."""


@dataclass(frozen=True, eq=False)
class JudgedWindow(ArrayValue):
    """N predictions; row i of every array is one of them."""

    ids: tuple[UUID, ...]
    groups: NDArray[np.generic] | None
    posteriors: Floats
    """shape (N, C), probability of each true class under the estimated prevalence"""
    decisions: Integers
    """shape (N,), of the head"""
    costs: Floats
    """shape (C, D), of the head"""
    label_free: PerformanceEstimate
    """of the head's decisions"""

    @property
    def rows(self) -> Mapping[UUID, int]:
        """Index of each prediction."""
        return {one: index for index, one in enumerate(self.ids)}

    @property
    def is_assumption_rejected(self) -> bool:
        """Whether the test "only the prevalence has changed" rejects."""
        return any(warning.code == "assumption_rejected" for warning in self.label_free.warnings)


def judge_window(
    window: Window, fitted: FittedQuantifier | LabeledLogits, head: PostProcessingHead
) -> JudgedWindow:
    """Estimate the probabilities of the classes of each prediction, and the performance without labels.

    Raises:
        InvalidInputError: the window is empty, or the calibration set cannot tell the classes apart.
    """
    if not window.ids:
        raise InvalidInputError(
            "there is no usable prediction in the window.",
            field="window",
            hint="Take a longer window: `window_seconds`.",
        )
    if not isinstance(fitted, FittedQuantifier):
        raise InvalidInputError(
            "the calibration set cannot tell the classes apart, so nothing is known of single predictions.",
            field="model",
            hint="Register another calibration set.",
        )
    return JudgedWindow(
        ids=window.ids,
        groups=window.groups,
        posteriors=posteriors_in_window(fitted, window.logits, fitted.prevalence(window.logits)),
        decisions=head.apply(window.logits).decisions,
        costs=head.costs,
        label_free=estimate_performance(
            fitted, window.logits, head, metrics=METRICS, groups=window.groups, confidence=CONFIDENCE
        ),
    )
