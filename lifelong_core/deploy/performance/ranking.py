"""AUROC of the head's probabilities without labels: of each class against the rest, with first-order effects."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.head import HeadOutput, PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.effects import Effects, TrueClasses
from lifelong_core.deploy.performance.posteriors import JudgedWindow, WindowPosteriors
from lifelong_core.values.arrays import Floats, Integers

_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class _Ranks:
    """Weighted distributions of one score among positives and negatives."""

    area: float
    """share of pairs in which the positive has the larger score, ties count half; nan where one kind is missing"""
    below_negative: Floats
    """shape (U,), share of the negatives with a smaller score than each row, half of equal ones included"""
    above_positive: Floats
    """shape (U,), share of the positives with a larger score, half of equal ones included"""

    @classmethod
    def of(cls, scores: Floats, positive: Floats, negative: Floats) -> "_Ranks":
        """Ranks of rows with these weights as positives and as negatives, shape (U,) each."""
        _, member = np.unique(scores, return_inverse=True)
        positives, negatives = (np.bincount(member, weights) for weights in (positive, negative))
        if not (positives.sum() > 0 and negatives.sum() > 0):
            blank = np.zeros(scores.size)
            return cls(float("nan"), blank, blank)
        positives, negatives = positives / positives.sum(), negatives / negatives.sum()
        below = np.cumsum(negatives) - negatives / 2
        above = 1 - np.cumsum(positives) + positives / 2
        return cls(float(positives @ below), below[member], above[member])


def posterior_areas(window: JudgedWindow, posteriors: WindowPosteriors) -> tuple[Effects, TrueClasses]:
    """AUROC of each class with posteriors as soft labels, shape (C,), and the effects of the true classes."""
    classes = int(posteriors.posteriors.shape[1])
    values: Floats = np.zeros(classes, dtype=np.float64)
    rows, through = np.zeros((window.counts.size, classes)), np.zeros((classes, classes))
    variances, slopes = np.zeros(classes), list[Floats]()
    for k in range(classes):
        own = posteriors.posteriors[:, k]
        ranks = _Ranks.of(window.probabilities[:, k], window.shares * own, window.shares * (1 - own))
        share = float(window.shares @ own)
        as_positive = (ranks.below_negative - ranks.area) / max(share, _SMALLEST)
        as_negative = (ranks.above_positive - ranks.area) / max(1 - share, _SMALLEST)
        values[k] = ranks.area
        rows[:, k] = own * as_positive + (1 - own) * as_negative
        is_own: Floats = np.zeros((1, classes))
        is_own[0, k] = 1.0
        of_own = np.broadcast_to(is_own, posteriors.posteriors.shape)
        moves = posteriors.change(of_own, own)
        slopes.append(posteriors.slopes(of_own, own, window.shares * (as_positive - as_negative)))
        through[:, k] = (window.shares * (as_positive - as_negative)) @ moves
        variances[k] = window.shares @ (own * (1 - own) * (as_positive - as_negative) ** 2)
    effects = Effects(values, rows, through, posteriors.density_effects(slopes), np.zeros_like(values))
    return effects, TrueClasses(rows, variances)


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


def rate_areas(rates: DecisionRates, prevalence: Floats, rows: int) -> Effects:
    """AUROC of each class among the calibration samples, weighted to a prevalence, (C,)."""
    labels, probabilities = rates.calibration.labels, rates.output.probabilities
    classes, shares = prevalence.size, 1 / rates.calibration.counts[labels]
    values, own = np.empty(classes), np.empty((labels.size, classes))
    through = np.zeros((classes, classes))
    for k in range(classes):
        is_positive = labels == k
        negative = np.where(is_positive, 0.0, prevalence[labels] * shares)
        ranks = _Ranks.of(probabilities[:, k], is_positive * shares, negative)
        values[k] = ranks.area
        rest = max(1 - prevalence[k], _SMALLEST)
        pairwise = np.bincount(labels, ranks.above_positive * shares, minlength=classes)
        through[:, k] = np.where(np.arange(classes) == k, 0.0, (pairwise - ranks.area) / rest)
        as_negative = prevalence[labels] / rest * (ranks.above_positive - pairwise[labels])
        own[:, k] = np.where(is_positive, ranks.below_negative - ranks.area, as_negative)
    return Effects(values, np.zeros((rows, classes)), through, own, np.zeros_like(values))


def _variances(rates: Floats, gradients: Floats) -> Floats:
    """Variance of the gradient over the decisions of each class, shape (C, K)."""
    first = np.einsum("kcd,cd->ck", gradients, rates)
    return np.einsum("kcd,cd->ck", gradients**2, rates) - first**2
