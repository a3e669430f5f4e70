"""Average thresholded confidence: ATC, TS-ATC, CS-ATC and CS-TS-ATC."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.performance.confidence.base import (
    Outcomes,
    ParametrisedMethod,
    other_classes,
    predicted_classes,
)
from lifelong_core.deploy.performance.confidence.scaling import match_temperature
from lifelong_core.values.arrays import Floats, Integers, Logits, as_logits, centre_rows, softmax

TIE = 1e-12
"""Log odds that differ by less, relative to the largest one or to 1, are equal: rounding errors must not break ties."""


@dataclass(frozen=True, eq=False)
class AverageThresholdedConfidence(ParametrisedMethod):
    """ATC of Li et al. 2022, eq. 5: a prediction is right where its confidence exceeds a threshold.

    The threshold is applied to the log odds of the predicted class, log p / (1 - p), which orders predictions like the
    confidence p and does not saturate in float64.

    A prediction judged right has probability 1 in the predicted class. One judged wrong has 0 there; the other classes
    share probability 1 in proportion to their own probabilities. (In the paper, a row has no sum to keep.)

    Examples:
        >>> from lifelong_core.deploy import LabeledLogits
        >>> calibration = LabeledLogits([[3.0, 0.0], [2.0, 0.0], [0.0, 4.0], [1.0, 0.0]], [0, 1, 1, 1])
        >>> method = AverageThresholdedConfidence.fit(calibration)
        >>> method.thresholds.tolist()
        [2.5, 2.5]
        >>> method.class_probabilities([[3.0, 0.0], [1.0, 0.0]]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "ATC"
    assumption: ClassVar[str] = (
        "One threshold of the confidence separates right from wrong predictions in number, in the window as in the "
        "calibration set."
    )
    scaled: ClassVar[bool] = False
    """whether a temperature is fitted first"""

    @classmethod
    def fit_one(cls, outcomes: Outcomes) -> tuple[float, ...]:
        """Temperature and threshold, by `match_threshold`, after `match_temperature` where scaled."""
        temperature = match_temperature(outcomes) if cls.scaled else 1.0
        return temperature, match_threshold(outcomes, temperature)

    @property
    def temperatures(self) -> Floats:
        """Temperature of predictions of each class, shape (C,)."""
        return self.parameters.values[:, 0]

    @property
    def thresholds(self) -> Floats:
        """Threshold of the log odds of predictions of each class, shape (C,); -inf, inf: all, none are right."""
        return self.parameters.values[:, 1]

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Each row's probability 1, in the predicted class or shared by the others; shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        checked = as_logits(logits, classes=self.parameters.classes)
        predicted = predicted_classes(checked)
        temperatures, thresholds = self.parameters.of(predicted)
        odds, shares = _log_odds(checked, predicted, temperatures)
        right = (odds > thresholds)[:, np.newaxis]
        return np.where(right, ~other_classes(predicted, self.parameters.classes), shares)


class ScaledAverageThresholdedConfidence(AverageThresholdedConfidence):
    """TS-ATC of Li et al. 2022: ATC after TS.

    One temperature changes the order of the confidences where C > 2, so that TS-ATC differs a little from ATC.
    """

    name: ClassVar[str] = "TS-ATC"
    assumption: ClassVar[str] = (
        "After temperature scaling, one threshold of the confidence separates right from wrong predictions in number, "
        "in the window as in the calibration set."
    )
    scaled: ClassVar[bool] = True


class ClassSpecificAverageThresholdedConfidence(AverageThresholdedConfidence):
    """CS-ATC of Li et al. 2022, eq. 6: one threshold for the predictions of each class."""

    name: ClassVar[str] = "CS-ATC"
    assumption: ClassVar[str] = (
        "One threshold of the confidence per predicted class separates right from wrong predictions in number, in the "
        "window as in the calibration set."
    )
    class_specific: ClassVar[bool] = True


class ClassSpecificScaledAverageThresholdedConfidence(AverageThresholdedConfidence):
    """CS-TS-ATC of Li et al. 2022: one temperature and then one threshold for the predictions of each class."""

    name: ClassVar[str] = "CS-TS-ATC"
    assumption: ClassVar[str] = (
        "After temperature scaling per predicted class, one threshold of the confidence per predicted class separates "
        "right from wrong predictions in number, in the window as in the calibration set."
    )
    scaled: ClassVar[bool] = True
    class_specific: ClassVar[bool] = True


def match_threshold(outcomes: Outcomes, temperature: float) -> float:
    """Threshold t of the log odds that minimises |share above t - accuracy| (Li et al. 2022, eqs. 5 and 6).

    The share is constant between neighbouring log odds: t is the midpoint there. Where two shares are equally near the
    accuracy, the smaller share counts, with the larger t. Where no prediction shall be right, t is infinite; where all
    shall be, t is the midpoint of their smallest log odds and the smallest possible ones, -log(C - 1), or -inf where
    these are equal.
    """
    count = outcomes.correct.size
    odds, _ = _log_odds(outcomes.logits, outcomes.predicted, np.full(count, temperature))
    descending = np.sort(odds)[::-1]
    lowest = -np.log(outcomes.classes - 1)
    ends = np.concatenate([[np.inf], descending, [lowest]])
    tie = TIE * max(1.0, float(np.abs(odds).max()))
    separable = ends[:-1] - ends[1:] > tie
    separable[-1] = True  # all predictions: always possible
    above = np.flatnonzero(separable)
    best = int(above[np.argmin(np.abs(above - int(outcomes.correct.sum())))])
    if best == count and descending[-1] - lowest <= tie:
        return -np.inf
    return float((ends[best] + ends[best + 1]) / 2)


def _log_odds(logits: Logits, predicted: Integers, temperatures: Floats) -> tuple[Floats, Floats]:
    """Log odds of the predicted class after scaling, (N,), and the shares of the other classes, (N, C)."""
    rows = centre_rows(logits) / temperatures[:, np.newaxis]
    others = np.where(other_classes(predicted, rows.shape[1]), rows, -np.inf)
    top = others.max(axis=1)
    total = top + np.log(np.exp(others - top[:, np.newaxis]).sum(axis=1))
    return np.take_along_axis(rows, predicted[:, np.newaxis], axis=1)[:, 0] - total, softmax(others)
