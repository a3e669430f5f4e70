"""Difference of confidences (DoC, CS-DoC), normalised calibration (NORCAL), and the registry of all methods."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.confidence.base import (
    ConfidenceMethod,
    Outcomes,
    ParametrisedMethod,
    other_classes,
    predicted_classes,
)
from lifelong_core.deploy.performance.confidence.scaling import (
    AverageConfidence,
    ClassSpecificTemperatureScaling,
    TemperatureScaling,
    VectorScaling,
)
from lifelong_core.deploy.performance.confidence.thresholds import (
    AverageThresholdedConfidence,
    ClassSpecificAverageThresholdedConfidence,
    ClassSpecificScaledAverageThresholdedConfidence,
    ScaledAverageThresholdedConfidence,
)
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_logits, centre_rows, read_only, softmax
from lifelong_core.values.scientific import minimum, root

LARGEST_EXPONENT = 4.0
STEP = 0.25
"""Range of the exponent, and distance of the points between which its root is searched."""


@dataclass(frozen=True, eq=False)
class DifferenceOfConfidences(ParametrisedMethod):
    """DoC of Li et al. 2022, eq. 3: the confidence minus its mean excess over the accuracy.

    The other classes share the difference equally. Single values can lie outside [0, 1]; their means over a window are
    the estimates.

    Examples:
        >>> from lifelong_core.deploy import LabeledLogits
        >>> calibration = LabeledLogits([[3.0, 0.0], [0.0, 1.0]], [0, 0])
        >>> method = DifferenceOfConfidences.fit(calibration)
        >>> method.differences.round(3).tolist()
        [0.342, 0.342]
        >>> method.class_probabilities([[3.0, 0.0]]).round(3).tolist()
        [[0.611, 0.389]]
    """

    name: ClassVar[str] = "DoC"
    assumption: ClassVar[str] = (
        "Mean confidence minus accuracy is the same in the window as in the calibration set."
    )

    @classmethod
    def fit_one(cls, outcomes: Outcomes) -> tuple[float, ...]:
        """The difference: mean confidence minus accuracy."""
        confidence = softmax(centre_rows(outcomes.logits)).max(axis=1)
        return (float(confidence.mean()) - outcomes.accuracy,)

    @property
    def differences(self) -> Floats:
        """Mean confidence minus accuracy of predictions of each class, in -1..1, shape (C,)."""
        return self.parameters.values[:, 0]

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Softmax, with the difference moved from the predicted class to the others; shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        classes = self.parameters.classes
        checked = as_logits(logits, classes=classes)
        predicted = predicted_classes(checked)
        (differences,) = self.parameters.of(predicted)
        shares = np.where(other_classes(predicted, classes), 1 / (classes - 1), -1.0)
        return softmax(centre_rows(checked)) + differences[:, np.newaxis] * shares


class ClassSpecificDifferenceOfConfidences(DifferenceOfConfidences):
    """CS-DoC of Li et al. 2022, eq. 4: one difference for the predictions of each class."""

    name: ClassVar[str] = "CS-DoC"
    assumption: ClassVar[str] = (
        "Per predicted class, mean confidence minus accuracy is the same in the window as in the calibration set."
    )
    class_specific: ClassVar[bool] = True


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


CONFIDENCE_METHODS: Mapping[str, type[ConfidenceMethod]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            AverageConfidence,
            TemperatureScaling,
            VectorScaling,
            NormalisedCalibration,
            ClassSpecificTemperatureScaling,
            DifferenceOfConfidences,
            ClassSpecificDifferenceOfConfidences,
            AverageThresholdedConfidence,
            ClassSpecificAverageThresholdedConfidence,
            ScaledAverageThresholdedConfidence,
            ClassSpecificScaledAverageThresholdedConfidence,
        )
    }
)
"""Methods by name, in the order of table 1 of Li et al. 2022."""

COUNTERPARTS: Mapping[str, str] = MappingProxyType(
    {name: name.removeprefix("CS-") for name in CONFIDENCE_METHODS if name.startswith("CS-")}
)
"""Class-agnostic counterpart of each class-specific method."""


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
