"""Kernel calibration errors for many weightings of the same samples at once; each kernel is evaluated once.

Copies of a sample in a resample are not independent samples: pairs of copies of a sample, or of a group, are ignored.
Otherwise the resampled errors would be too large.
"""

import numpy as np

from lifelong_core.metrics.calibration.binned import as_norm
from lifelong_core.metrics.calibration.density import Smoothing, evaluated_rows
from lifelong_core.metrics.calibration.kernel import (
    PAIRED_SAMPLES,
    as_subsample,
    draw_subsample,
    median_pairwise_distance,
)
from lifelong_core.metrics.catalogue.parameters import Parameters
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.scores.scoring_rules import truth_gaps
from lifelong_core.metrics.scores.weighted_scores import Counts, Weighted
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.scientific import distances


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
