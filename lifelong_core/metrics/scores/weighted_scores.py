"""Metrics of scores for many weightings of the same samples at once; expensive parts are computed once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.metrics.calibration.binned import bin_edges, top_label
from lifelong_core.metrics.catalogue.parameters import Parameters
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.scores.scoring_rules import truth_gaps
from lifelong_core.values.arrays import Floats, Integers, Mask

Counts: TypeAlias = NDArray[np.integer]
Weighted: TypeAlias = Callable[[Counts], Floats]
"""function of the samples' weights, (B, n), with values (B,), or (B, C) for a metric per class"""


def weighted_scores(
    acronym: str, labels: Integers, probabilities: Floats, chosen: Parameters
) -> Weighted | None:
    """Return a metric of scores as a function of the samples' weights; None where there is no fast way.

    Args:
        acronym: of the metric; CWCE gives the error of each class.
        labels: shape (n,).
        probabilities: shape (n, C).
        chosen: its parameters.
    """
    match acronym:
        case "AUROC" | "AP":
            return _of_orders(acronym, labels, probabilities)
        case "NB":
            return _net_benefit(labels, probabilities, chosen.threshold)
        case "BS":
            return weighted_brier_score(labels, probabilities)
        case "RBS":
            score = weighted_brier_score(labels, probabilities)
            return lambda weights: np.sqrt(score(weights))
        case "BSS":
            return _skill(labels, probabilities)
        case "NLL":
            return _surprise(labels, probabilities)
        case "ECE":
            return _binned(*top_label(labels, probabilities), chosen)
        case "CWCE":
            of_class = [_binned(column, labels == k, chosen) for k, column in enumerate(probabilities.T)]
            return lambda weights: np.stack([one(weights) for one in of_class], axis=-1)
        case _:
            return None


@dataclass(frozen=True, eq=False)
class _Order:
    """Samples by descending score, and the positions of the positive ones, shape (P,), among them.

    Only the positives are evaluated, because they are few in most classes.
    """

    order: Integers
    """shape (n,)"""
    positives: Integers
    """shape (P,), among the samples"""
    above: Integers
    """shape (P,), number of samples with a higher score"""
    down_to: Integers
    """shape (P,), number of samples with at least this score"""
    positives_down_to: Integers
    """shape (P,), number of positive samples among them"""

    @classmethod
    def of(cls, scores: Floats, is_positive: Mask) -> Self:
        order = np.argsort(-scores, kind="stable")
        positives = order[is_positive[order]]
        ascending, own = -scores[order], -scores[positives]
        return cls(
            order=order,
            positives=positives,
            above=np.searchsorted(ascending, own, side="left").astype(np.int64),
            down_to=np.searchsorted(ascending, own, side="right").astype(np.int64),
            positives_down_to=np.searchsorted(own, own, side="right").astype(np.int64),
        )

    def roc_area(self, weights: Counts) -> Floats:
        cumulated, own = _cumulated(weights, self.order), weights[:, self.positives].astype(np.float64)
        positives, total = own.sum(axis=1), cumulated[:, -1]
        # All that score higher, and half of those that score the same; of the positives that is half of their pairs.
        higher = (own * (cumulated[:, self.above] + cumulated[:, self.down_to])).sum(axis=1) / 2
        pairs = positives * (total - positives)
        return ratio(pairs - (higher - positives**2 / 2), pairs)

    def average_precision(self, weights: Counts) -> Floats:
        down_to = np.maximum(_cumulated(weights, self.order)[:, self.down_to], 1)
        found = _cumulated(weights, self.positives)[:, self.positives_down_to]
        own = weights[:, self.positives].astype(np.float64)
        return ratio((own * (found / down_to)).sum(axis=1), own.sum(axis=1))


def _cumulated(weights: Counts, order: Integers) -> Counts:
    """Sums of the first 0, 1, ... weights in that order, shape (B, n + 1)."""
    sums = np.zeros((len(weights), order.size + 1), np.int32)
    np.cumsum(np.take(weights, order, axis=1), axis=1, dtype=np.int32, out=sums[:, 1:])
    return sums


def _of_orders(acronym: str, labels: Integers, probabilities: Floats) -> Weighted:
    orders = [_Order.of(column, labels == k) for k, column in enumerate(probabilities.T)]
    metric = _Order.roc_area if acronym == "AUROC" else _Order.average_precision
    return lambda weights: np.stack([metric(order, weights) for order in orders], axis=-1)


def _sums(weights: Counts, values: Floats) -> Floats:
    """Weighted sums of values (n,) or (n, K), shape (B,) or (B, K)."""
    return weights.astype(np.float64) @ values


def _mean(weights: Counts, values: Floats) -> Floats:
    """Weighted means, of the same shape; nan without any sample."""
    totals = weights.sum(axis=1).astype(np.float64)
    return ratio(_sums(weights, values), totals if values.ndim == 1 else totals[:, np.newaxis])


def _net_benefit(labels: Integers, probabilities: Floats, threshold: float) -> Weighted:
    is_class = np.eye(probabilities.shape[1])[labels]
    rate = ratio(threshold, 1 - threshold) if threshold < 1 else np.array(np.nan)
    benefits = (probabilities >= threshold) * (is_class - (1 - is_class) * rate)
    return lambda weights: _mean(weights, benefits)


def weighted_brier_score(labels: Integers, probabilities: Floats) -> Weighted:
    """Brier score as a function of the samples' weights."""
    distances = np.square(truth_gaps(labels, probabilities)).sum(axis=1)
    return lambda weights: _mean(weights, distances)


def _skill(labels: Integers, probabilities: Floats) -> Weighted:
    score, is_class = weighted_brier_score(labels, probabilities), np.eye(probabilities.shape[1])[labels]

    def evaluate(weights: Counts) -> Floats:
        shares = _mean(weights, is_class)
        return 1 - ratio(score(weights), (shares * (1 - shares)).sum(axis=1))

    return evaluate


def _surprise(labels: Integers, probabilities: Floats) -> Weighted:
    likelihoods = probabilities[np.arange(labels.size), labels]
    never = (likelihoods == 0).astype(np.float64)
    surprise = -np.log(np.where(never, 1, likelihoods))
    return lambda weights: np.where(_sums(weights, never) > 0, np.inf, _mean(weights, surprise))


def _binned(scores: Floats, is_hit: Mask, chosen: Parameters) -> Weighted:
    """Mean over the samples of |mean score - share of hits|**norm of their bin."""
    edges = bin_edges(chosen.bins_or_default)
    side = "left" if chosen.right_closed else "right"
    members = np.eye(edges.size - 1)[np.searchsorted(edges[1:-1], scores, side=side)]
    members = members[:, members.any(axis=0)]
    both = np.concatenate([members, members * (scores - is_hit)[:, np.newaxis]], axis=1)

    def evaluate(weights: Counts) -> Floats:
        sizes, gaps = np.split(_sums(weights, both), 2, axis=1)
        errors = np.abs(gaps / np.maximum(sizes, 1)) ** chosen.norm
        return ratio((sizes * errors).sum(axis=1), sizes.sum(axis=1))

    return evaluate
