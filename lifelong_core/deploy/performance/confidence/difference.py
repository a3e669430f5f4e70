"""Difference of confidences: DoC and CS-DoC."""

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
from lifelong_core.values.arrays import Floats, as_logits, centre_rows, softmax


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
