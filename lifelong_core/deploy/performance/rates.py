"""Performance from rates: P(decision | class) on the calibration set times the estimated prevalence."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.head import HeadOutput, PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.effects import Effects
from lifelong_core.values.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class DecisionRates:
    """Decisions of a head on held-out calibration samples, by class."""

    calibration: LabeledLogits
    output: HeadOutput
    """on the M calibration samples"""
    rates: Floats
    """shape (C, D), share of each decision among the samples of each class; rows sum to 1"""

    @classmethod
    def of(cls, calibration: LabeledLogits, head: PostProcessingHead, output: HeadOutput) -> Self:
        """Rates of a head with this output on the calibration samples, held out where it was fitted on them."""
        counts = np.zeros((calibration.classes, head.costs.shape[1]))
        np.add.at(counts, (calibration.labels, output.decisions), 1.0)
        return cls(calibration, output, counts / calibration.counts[:, np.newaxis])

    @property
    def decisions(self) -> Integers:
        """Decisions on the calibration samples, shape (M,)."""
        return self.output.decisions

    def confusion(self, prevalence: Floats) -> Floats:
        """Shares of true class and decision, (C, D), under a prevalence, (C,) (thesis Prop. 2.25)."""
        return prevalence[:, np.newaxis] * self.rates

    def effects(self, prevalence: Floats, gradients: Floats, values: Floats, rows: int) -> Effects:
        """Effects on K statistics of the confusion matrix, with gradients of shape (K, C, D) and values (K,).

        Args:
            prevalence: shape (C,).
            gradients: shape (K, C, D).
            values: shape (K,).
            rows: distinct rows of the window, which act through the prevalence only.
        """
        by_class = np.einsum("kcd,cd->ck", gradients, self.rates)
        labels = self.calibration.labels
        own = gradients[:, labels, self.decisions].T - by_class[labels]
        return Effects(
            values,
            np.zeros((rows, values.size)),
            by_class,
            prevalence[labels][:, np.newaxis] * own,
            self._unseen(prevalence, gradients),
        )

    def _unseen(self, prevalence: Floats, gradients: Floats) -> Floats:
        """Variance due to decisions that a class of few samples did not show, shape (K,).

        The rates with one sample more, spread evenly over the decisions, have this much more variance (Agresti and
        Coull 1998 do the same for a proportion).
        """
        counts = self.calibration.counts[:, np.newaxis].astype(np.float64)
        smoothed = (counts * self.rates + 1 / self.rates.shape[1]) / (counts + 1)
        more = _variances(smoothed, gradients) - _variances(self.rates, gradients)
        return (np.maximum(more, 0) * (prevalence**2)[:, np.newaxis] / counts).sum(axis=0)


def _variances(rates: Floats, gradients: Floats) -> Floats:
    """Variance of the gradient over the decisions of each class, shape (C, K)."""
    first = np.einsum("kcd,cd->ck", gradients, rates)
    return np.einsum("kcd,cd->ck", gradients**2, rates) - first**2
