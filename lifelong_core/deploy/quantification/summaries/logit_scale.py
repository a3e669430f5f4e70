"""Scale of logits: the logarithm of the norm of centred logits, by class of the calibration set."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.values.arrays import Floats, Logits, centre_rows

_FACTOR = 8.0
"""Norms count as at most this many times the largest norm of the calibration set, and as at least the smallest one
divided by it: single rows with absurd logits do not move the mean."""


@dataclass(frozen=True, eq=False)
class LogitScale:
    """Log norms of a calibration set."""

    lowest: float
    highest: float
    """bounds of the log norms that count"""
    means: Floats
    """shape (C,), mean log norm of each class"""
    variances: Floats
    """shape (C,), variance within each class"""

    @classmethod
    def of(cls, calibration: LabeledLogits) -> Self:
        """Compute the scale of a calibration set with samples of every class."""
        norms = np.linalg.norm(centre_rows(calibration.logits), axis=1)
        positive = norms[norms > 0]
        lowest, highest = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 1.0)
        blank = cls(
            float(np.log(lowest) - np.log(_FACTOR)),
            float(np.log(highest) + np.log(_FACTOR)),
            np.zeros(0),
            np.zeros(0),
        )
        values = blank.log_norms(calibration.logits)
        means = class_means(values[:, np.newaxis], calibration)[0]
        deviations = (values - means[calibration.labels]) ** 2
        variances = class_means(deviations[:, np.newaxis], calibration)[0]
        return cls(blank.lowest, blank.highest, means, variances)

    def log_norms(self, logits: Logits) -> Floats:
        """Logarithm of the norm of each row's centred logits, within the bounds, shape (N,)."""
        norms = np.linalg.norm(centre_rows(logits), axis=1)
        return np.log(np.clip(norms, np.exp(self.lowest), np.exp(self.highest)))

    def sums(self, logits: Logits) -> Floats:
        """Sum of the log norms and of their squares, shape (2,); sums of batches add up."""
        values = self.log_norms(logits)
        return np.array([values.sum(), (values**2).sum()])
