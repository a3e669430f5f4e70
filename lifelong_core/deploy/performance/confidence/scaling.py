"""Confidence as it is (AC), after temperature scaling (TS, CS-TS), or after vector scaling (VS)."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.calibration.affine import (
    MAXIMUM_SCALED_INVERSE,
    MINIMUM_SCALED_INVERSE,
    AffineCalibration,
    fit_weighted,
)
from lifelong_core.deploy.calibration.cross_entropy import typical_size
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.confidence.base import Outcomes, ParametrisedMethod, predicted_classes
from lifelong_core.values.arrays import Floats, as_logits, centre_rows, softmax
from lifelong_core.values.scientific import root


@dataclass(frozen=True)
class AverageConfidence:
    """AC of Li et al. 2022, section 2: the estimated accuracy is the mean of the largest probability.

    Examples:
        >>> calibration = LabeledLogits([[2.0, 0.0], [0.0, 1.0]], [0, 1])
        >>> AverageConfidence.fit(calibration).class_probabilities([[2.0, 0.0]]).round(3).tolist()
        [[0.881, 0.119]]
    """

    name: ClassVar[str] = "AC"
    assumption: ClassVar[str] = "The probabilities of the network are calibrated in the window."

    classes: int

    @classmethod
    def fit(cls, calibration: LabeledLogits) -> Self:
        """Nothing to fit but the number of classes."""
        return cls(calibration.classes)

    @property
    def fallback_classes(self) -> tuple[int, ...]:
        """Always empty: there is no parameter."""
        return ()

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Softmax of the logits, shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        return softmax(as_logits(logits, classes=self.classes).astype(float))


@dataclass(frozen=True, eq=False)
class TemperatureScaling(ParametrisedMethod):
    """TS of Li et al. 2022, eq. 1: one temperature that makes the mean confidence equal the accuracy.

    This is not the temperature of the smallest cross entropy (thesis Def. 2.67), which `fit_affine` fits.

    Examples:
        >>> from lifelong_core.deploy import LabeledLogits
        >>> calibration = LabeledLogits([[3.0, 0.0], [2.0, 0.0], [0.0, 4.0], [1.0, 0.0]], [0, 0, 1, 1])
        >>> method = TemperatureScaling.fit(calibration)
        >>> method.class_probabilities(calibration.logits).max(axis=1).mean().round(6)
        np.float64(0.75)
    """

    name: ClassVar[str] = "TS"
    assumption: ClassVar[str] = (
        "One temperature calibrates the confidence of all predictions, in the window as in the calibration set."
    )

    @classmethod
    def fit_one(cls, outcomes: Outcomes) -> tuple[float, ...]:
        """The temperature, by `match_temperature`."""
        return (match_temperature(outcomes),)

    @property
    def temperatures(self) -> Floats:
        """Temperature of predictions of each class, shape (C,)."""
        return self.parameters.values[:, 0]

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Softmax of the logits over the temperature of the predicted class, shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        checked = as_logits(logits, classes=self.parameters.classes)
        (temperatures,) = self.parameters.of(predicted_classes(checked))
        return softmax(centre_rows(checked) / temperatures[:, np.newaxis])


class ClassSpecificTemperatureScaling(TemperatureScaling):
    """CS-TS of Li et al. 2022, eq. 2: one temperature for the predictions of each class."""

    name: ClassVar[str] = "CS-TS"
    assumption: ClassVar[str] = (
        "One temperature per predicted class calibrates the confidence, in the window as in the calibration set."
    )
    class_specific: ClassVar[bool] = True


def match_temperature(outcomes: Outcomes) -> float:
    """Temperature that minimises |mean confidence - accuracy| (Li et al. 2022, eqs. 1 and 2).

    The mean confidence falls in the temperature, so that the minimum is a root or an end of the range: from a
    thousandth of the typical size of a centred logit to a million times that size. The largest temperature results
    where the accuracy is not above 1 / C, which every confidence exceeds, the smallest where the accuracy is 1 or else
    above the mean confidence at that temperature (rows with equal largest logits never have a confidence above 1/2).
    """
    rows = centre_rows(outcomes.logits)
    gaps = rows.max(axis=1, keepdims=True) - rows
    accuracy, size = outcomes.accuracy, typical_size(rows)

    def excess(log_inverse: float) -> float:
        return float((1 / np.exp(-gaps * np.exp(log_inverse)).sum(axis=1)).mean()) - accuracy

    low, high = (float(np.log(bound / size)) for bound in (MINIMUM_SCALED_INVERSE, MAXIMUM_SCALED_INVERSE))
    return float(np.exp(-root(excess, low, high)))


@dataclass(frozen=True)
class VectorScaling:
    """VS of Guo et al. 2017, as compared by Li et al. 2022: temperature and bias per class of smallest cross entropy.

    The largest calibrated probability can belong to another class than the predicted one. The estimated accuracy is
    that of the prediction, the mean probability of the class with the largest raw logit. Li et al. average the largest
    calibrated probability instead. Their code fits by |mean confidence - accuracy|, which has many minima, so that the
    result depends on the start; we minimise the cross entropy, like Guo et al.

    A class without a calibration sample has probability 0.

    Examples:
        >>> logits = [[3.0, 0.0], [2.0, 0.0], [0.0, 4.0], [1.0, 0.0], [0.0, 1.0]]
        >>> method = VectorScaling.fit(LabeledLogits(logits, [0, 0, 1, 1, 0]))
        >>> method.class_probabilities([[3.0, 0.0]]).round(2).tolist()
        [[0.88, 0.12]]
    """

    name: ClassVar[str] = "VS"
    assumption: ClassVar[str] = (
        "A temperature and a bias per class calibrate the probabilities, in the window as in the calibration set."
    )

    scaling: AffineCalibration

    @classmethod
    def fit(cls, calibration: LabeledLogits) -> Self:
        """Fit by cross entropy."""
        return cls(
            fit_weighted(
                calibration.logits,
                calibration.labels,
                np.ones(calibration.samples),
                per_class_temperature=True,
            )
        )

    @property
    def fallback_classes(self) -> tuple[int, ...]:
        """Always empty: every class has its parameters, whether it is predicted or not."""
        return ()

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Softmax of logits / temperature + bias, shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        return self.scaling.probabilities(logits)
