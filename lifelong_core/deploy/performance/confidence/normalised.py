"""Normalised calibration for long-tailed classes (NORCAL)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.confidence.base import Outcomes
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_logits, centre_rows, read_only, softmax
from lifelong_core.values.scientific import minimum, root

LARGEST_EXPONENT = 4.0
STEP = 0.25
"""Range of the exponent, and distance of the points between which its root is searched."""


@dataclass(frozen=True, eq=False)
class NormalisedCalibration(ArrayValue):
    """NORCAL of Pan et al. 2021, as compared by Li et al. 2022: probabilities proportional to p_j / N_j^gamma.

    N_j is the number of calibration samples of class j, at least 1 (Pan et al.: training samples, which a deployed
    model does not have). The exponent is that of Pan et al., not negative, with the objective of Li et al.: the mean
    confidence on the calibration set equals the accuracy. The code of Li et al. has no NORCAL.

    The largest calibrated probability can belong to another class than the predicted one. Confidence is therefore the
    probability of the class with the largest raw logit, in the fit and in the estimate. Li et al. average the largest
    calibrated probability instead.

    Examples:
        >>> logits = [[2.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
        >>> method = NormalisedCalibration.fit(LabeledLogits(logits, [0, 0, 0, 1, 1]))
        >>> predicted = np.array(logits).argmax(axis=1)
        >>> method.class_probabilities(logits)[np.arange(5), predicted].mean().round(6)
        np.float64(0.8)
    """

    name: ClassVar[str] = "NORCAL"
    assumption: ClassVar[str] = (
        "Division by a power of the class's frequency calibrates the probabilities, in the window as in the "
        "calibration set."
    )

    exponent: float
    """gamma, in 0..LARGEST_EXPONENT"""
    log_counts: Floats
    """logarithm of the calibration samples of each class, shape (C,)"""

    @classmethod
    def fit(cls, calibration: LabeledLogits) -> Self:
        """Fit by `match_exponent`."""
        log_counts = read_only(np.log(np.maximum(calibration.counts, 1)))
        return cls(match_exponent(Outcomes.of(calibration), log_counts), log_counts)

    @property
    def fallback_classes(self) -> tuple[int, ...]:
        """Always empty: there is one exponent."""
        return ()

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Softmax of logits - gamma log N_j, shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        checked = as_logits(logits, classes=self.log_counts.size)
        return softmax(centre_rows(checked) - self.exponent * self.log_counts)


def match_exponent(outcomes: Outcomes, log_counts: Floats) -> float:
    """Exponent in 0..LARGEST_EXPONENT that minimises |mean confidence - accuracy|.

    The mean confidence is not monotone in the exponent: of several roots, the smallest counts (up to STEP). Where the
    confidence never reaches the accuracy, e.g. that of an under-confident network, the nearest value counts: 0 where
    all classes have the same number of samples.
    """
    if np.ptp(log_counts) == 0:
        return 0.0
    rows = centre_rows(outcomes.logits)
    accuracy, each = outcomes.accuracy, np.arange(outcomes.correct.size)

    def excess(exponent: float) -> float:
        confidence = softmax(rows - exponent * log_counts)[each, outcomes.predicted]
        return float(confidence.mean()) - accuracy

    points = np.arange(0, LARGEST_EXPONENT + STEP, STEP).tolist()
    found = [excess(0.0)]
    for before, after in pairwise(points):
        found.append(excess(after))
        if found[-2] * found[-1] <= 0:
            return root(excess, before, after)
    nearest = points[int(np.argmin(np.abs(found)))]
    return minimum(
        lambda exponent: abs(excess(exponent)),
        max(nearest - STEP, 0.0),
        min(nearest + STEP, LARGEST_EXPONENT),
    )
