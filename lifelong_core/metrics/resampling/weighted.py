"""Metrics of scores and kernels for many weightings of the same samples at once; expensive parts are computed once.

Copies of a sample in a resample are not independent samples: the kernel errors ignore pairs of copies of a sample, or
of a group. Otherwise the resampled errors would be too large.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.metrics.calibration.binned import as_norm, bin_edges, top_label
from lifelong_core.metrics.calibration.density import Smoothing, evaluated_rows
from lifelong_core.metrics.calibration.kernel import (
    PAIRED_SAMPLES,
    as_subsample,
    draw_subsample,
    median_pairwise_distance,
)
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.inputs import Parameters
from lifelong_core.metrics.scores.scoring_rules import truth_gaps
from lifelong_core.values.arrays import Floats, Integers, Mask
from lifelong_core.values.scientific import distances

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
            return lambda weights: np.stack([error(weights) for error in of_class], axis=-1)
        case _:
            return None


def weighted_brier_score(labels: Integers, probabilities: Floats) -> Weighted:
    """Brier score as a function of the samples' weights."""
    distances = np.square(truth_gaps(labels, probabilities)).sum(axis=1)
    return lambda weights: _mean(weights, distances)


def weighted_kernel_error(
    labels: Integers, probabilities: Floats, unit: Integers, chosen: Parameters, *, seed: int
) -> Weighted:
    """Unbiased `kernel_calibration_error`, on the subsample that it draws from the same seed.

    Args:
        labels: shape (n,).
        probabilities: shape (n, C).
        unit: shape (n,), unit of each sample; samples of one unit are drawn together.
        chosen: bandwidth and subsample.
        seed: seed of the subsample.
    """
    generator = np.random.default_rng(seed)
    rows = draw_subsample(labels.size, as_subsample(chosen.subsample, PAIRED_SAMPLES), generator)
    points = probabilities[rows]
    width = chosen.bandwidth
    if width is None:
        width = median_pairwise_distance(points, rng=generator)
    if rows.size < 2 or not width > 0:
        return lambda weights: np.full(len(weights), np.nan)
    gaps = truth_gaps(labels[rows], points)
    pairs = np.exp(distances(points, points) / -width) * (gaps @ gaps.T)
    np.fill_diagonal(pairs, 0)
    _, first, member = np.unique(unit[rows], return_index=True, return_inverse=True)
    if first.size < rows.size:
        belongs = np.eye(first.size)[member]
        pairs = belongs.T @ pairs @ belongs
    sizes = np.bincount(member).astype(np.float64)
    within = np.diagonal(pairs).copy()
    np.fill_diagonal(pairs, 0)

    def evaluate(weights: Counts) -> Floats:
        times = weights[:, rows[first]].astype(np.float64)
        sums = ((times @ pairs) * times).sum(axis=1) + times @ within
        drawn = times @ sizes
        counted = drawn**2 - times**2 @ sizes**2 + times @ (sizes * (sizes - 1))
        return ratio(sums, counted)

    return evaluate


def weighted_ece_kde(
    labels: Integers, probabilities: Floats, unit: Integers, chosen: Parameters, *, seed: int
) -> Weighted:
    """`ece_kde` at the cases that it draws from the same seed; its arguments are those of `weighted_kernel_error`."""
    rows = evaluated_rows(labels.size, chosen.subsample, seed)
    if labels.size < 2:
        return lambda weights: np.full(len(weights), np.nan)
    power = as_norm(chosen.norm)
    smoothing = Smoothing.of(labels, probabilities, chosen.bandwidth, rng=seed)
    kernel = smoothing.weights_at(rows)
    targets, offsets = smoothing.targets(labels), smoothing.offsets[rows]
    # The last column counts the mass of the kernel.
    values = np.concatenate([targets, np.ones((labels.size, 1))], axis=1)
    is_own = unit[rows][:, np.newaxis] == unit
    own = (kernel * is_own) @ values
    kernel, columns = np.ascontiguousarray(kernel.T, dtype=np.float32), values.T.astype(np.float32)

    def evaluate(weights: Counts) -> Floats:
        times = weights[:, rows].astype(np.float64)
        copies = np.maximum(times - 1, 0)[..., np.newaxis]
        masses = np.stack([(weights * column) @ kernel for column in columns], axis=-1) - copies * own
        nearby = ratio(masses[..., :-1], masses[..., -1:])
        terms = (np.abs(nearby - offsets) ** power).sum(axis=-1)
        if smoothing.is_centred:  # Far from all drawn cases, float32 has no mass.
            times = np.where(np.isnan(terms), 0.0, times)
        return ratio(np.where(times > 0, times * terms, 0).sum(axis=1), times.sum(axis=1))

    return evaluate


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
