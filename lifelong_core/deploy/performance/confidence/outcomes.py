"""Predictions of a calibration set with their confidence, and whether they are right."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Integers, Logits, Mask


def predicted_classes(logits: Logits) -> Integers:
    """Class with the largest logit, the first of equal ones; shape (N,)."""
    return logits.argmax(axis=1).astype(np.int64)


def other_classes(predicted: Integers, classes: int) -> Mask:
    """True where the column is not the predicted class, shape (N, C)."""
    return predicted[:, np.newaxis] != np.arange(classes)


@dataclass(frozen=True)
class Outcomes:
    """Labelled predictions of one predicted class, or of all."""

    logits: Logits
    """shape (N, C)"""
    predicted: Integers
    """shape (N,)"""
    correct: Mask
    """whether the predicted class is the true one, shape (N,)"""

    @classmethod
    def of(cls, calibration: LabeledLogits) -> Self:
        """Outcomes of argmax decisions on the calibration set."""
        predicted = predicted_classes(calibration.logits)
        return cls(calibration.logits, predicted, predicted == calibration.labels)

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.logits.shape[1]

    @property
    def accuracy(self) -> float:
        """Share of correct predictions (alpha of Li et al. 2022)."""
        return float(self.correct.mean())

    def by_predicted_class(self) -> Iterator[tuple[int, Self]]:
        """Each class that is predicted, with its outcomes."""
        for one in np.unique(self.predicted).tolist():
            mine = self.predicted == one
            yield one, type(self)(self.logits[mine], self.predicted[mine], self.correct[mine])
