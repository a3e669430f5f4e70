"""Canonical calibration error by kernel density estimation, with a bandwidth that is chosen on the data."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.calibration.binned import as_norm
from lifelong_core.metrics.calibration.kernel import Estimate, as_subsample, draw_subsample
from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.samples import as_labelled_probabilities, blocks
from lifelong_core.metrics.scores.scoring_rules import truth_gaps
from lifelong_core.values.arrays import Floats, Integers, as_bandwidth
from lifelong_core.values.scientific import log_gamma

KERNEL_EVALUATIONS = 10_000_000
"""Default limit of the kernel evaluations of `ece_kde`: 0.2 s."""
FEWEST_EVALUATED = 100
SMALLEST_DIRICHLET_BANDWIDTH = 1e-6
"""Below it, rounding of the log-gammas changes kernels by more than 1e-8."""
ROWS_TOGETHER = 1000
"""Cases at which labels are smoothed at a time."""
BANDWIDTHS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Bandwidths among which `leave_one_out_bandwidth` chooses."""
BANDWIDTH_SAMPLES = 10_000
"""Largest number of cases on which the bandwidth is chosen"""
BANDWIDTH_EVALUATIONS = 5_000_000
"""Largest number of kernel evaluations for each bandwidth"""
FLOOR = 1e-10
"""Least probability in kernels of a chosen bandwidth: without it, two predictions of probability 1 for different
classes have no kernel in common."""


@metric(
    "ECE_KDE",
    "KDE calibration error",
    "All class probabilities together: their distance from how often the classes occur among similar probabilities.",
    definition="2.70",
    formula="mean_j ||ratio_j-phi_j||_p^p (no root)",
    undefined="fewer than two samples; given bandwidth: no kernel mass (an isolated probability of exactly 1)",
    bounds=(0, 2),
    orientation="down",
    family="calibration",
)
def ece_kde(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    bandwidth: float | None = None,
    norm: float = 1,
    subsample: int | None = None,
    rng: int | np.random.Generator = 0,
) -> Estimate:
    """Calibration error by kernel density estimation (thesis Def. 2.70), in [0, 2], less is better.

    The mean over the cases of ||class shares nearby - probabilities||_norm ** norm. The shares weigh each
    other case i by the density of Dirichlet(p_i / bandwidth + 1) at the probabilities of this one. No root is taken.

    With a given bandwidth, the probabilities are those of the case itself, as defined. Kernels of finite width then
    measure the smoothing too: perfectly calibrated predictions have an error of .05 to .6, and under-confident ones
    may have less. Without a bandwidth, the probabilities are smoothed as the labels are: ||mean of (e_y - p) nearby||.
    Both converge to the canonical calibration error (Popordanoska et al. 2022) as the bandwidth goes to 0. The
    bandwidth is then the one by which the probabilities, corrected by the errors nearby, best predict the label of
    the case that is left out (`leave_one_out_bandwidth`). What perfectly calibrated predictions still have, by chance
    alone, is told by `calibrated_reference`.

    With many cases the mean is taken over a random subsample of them, each compared with all others,
    so that the estimate is unbiased for that of all cases. Memory grows with N C, not with N**2.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        bandwidth: of the kernel, 1e-6 or more; None: chosen on the data.
        norm: power of the distance, 1 or more.
        subsample: number of cases, 3 or more, over which the mean is taken (all, if it is N or more); None:
            as many as ten million evaluations of the kernel allow (all up to N = 3,162), but at least 100.
        rng: seed or generator of the subsample, and of that for the bandwidth.

    Returns:
        The estimate; nan where it is undefined: fewer than two cases, or (given bandwidth) a case at which the
        densities of all others are 0, as for an isolated prediction of probability 1.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> round(ece_kde([0, 0, 0], [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]], bandwidth=0.1).value, 4)
        0.8
        >>> ece_kde([0, 1], [[1.0, 0.0], [0.0, 1.0]], bandwidth=0.1).value
        nan
        >>> rng = np.random.default_rng(0)
        >>> probabilities = rng.dirichlet([1, 1, 1], 1000)
        >>> labels = (rng.random((1000, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
        >>> ece_kde(labels, probabilities).value < 0.05 < ece_kde(labels, probabilities, bandwidth=0.1).value
        True
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    if bandwidth is not None:
        bandwidth = as_bandwidth(bandwidth, smallest=SMALLEST_DIRICHLET_BANDWIDTH)
    power, samples = as_norm(norm), reference.size
    chosen = evaluated_rows(samples, subsample, rng)
    if samples < 2:
        return Estimate(float("nan"), float("nan"), chosen.size)
    smoothing = Smoothing.of(reference, predicted, bandwidth, rng=rng)
    gaps = smoothing.smoothed(reference, chosen)
    if not smoothing.is_centred:
        gaps -= predicted[chosen]
    terms = (np.abs(gaps) ** power).sum(axis=1)
    error = float(terms.std(ddof=1)) * math.sqrt((1 - chosen.size / samples) / chosen.size)
    return Estimate(float(terms.mean()), error, chosen.size)


def leave_one_out_bandwidth(
    labels: ArrayLike, probabilities: ArrayLike, *, rng: int | np.random.Generator = 0
) -> float:
    """Bandwidth by which the errors of other predictions nearby best correct a prediction, one of `BANDWIDTHS`.

    For each bandwidth, the probabilities of a case plus the mean of (e_y - p) of all other cases nearby predict its
    label; the bandwidth of the least Brier score is chosen, the largest of equal ones. Where nothing is to correct,
    wide kernels are best, and the calibration error is near 0.

    Popordanoska et al. (2022) choose the bandwidth by which the others predict the *probabilities* of the case best
    (leave-one-out likelihood of the density). That is no bandwidth for shares of labels: equally distributed
    predictions get the widest kernel and concentrated ones so narrow a kernel that single labels are compared, and
    perfectly calibrated predictions of 3 to 8 classes have an error of .03 to .85 with it.

    Beyond 10,000 cases, a random subsample of this size is used, of which up to 500 are predicted by all others.

    Args:
        labels: shape (N,), true classes, N of 2 or more.
        probabilities: shape (N, C).
        rng: seed or generator of the subsamples.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> probabilities = rng.dirichlet([1, 1], 500)
        >>> labels = (rng.random(500) < probabilities[:, 1]).astype(int)
        >>> leave_one_out_bandwidth(labels, probabilities) > leave_one_out_bandwidth(1 - labels, probabilities)
        True
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    generator = np.random.default_rng(rng)
    rows = draw_subsample(reference.size, BANDWIDTH_SAMPLES, generator)
    predicted = np.maximum(predicted[rows], FLOOR)
    gaps = truth_gaps(reference[rows], predicted)
    predicts = draw_subsample(rows.size, BANDWIDTH_EVALUATIONS // max(rows.size, 1), generator)
    products = (np.log(predicted[predicts]) @ predicted.T).astype(np.float32)
    targets = gaps.astype(np.float32)
    found = BANDWIDTHS[-1]
    least = math.inf
    for width in reversed(BANDWIDTHS):
        weights = products / np.float32(width)
        weights += _log_normaliser(predicted / width).astype(np.float32)
        weights[np.arange(predicts.size), predicts] = -np.inf
        weights -= weights.max(axis=1, keepdims=True)
        np.exp(weights, out=weights)
        nearby = weights @ targets / weights.sum(axis=1, keepdims=True)
        score = float(np.square(gaps[predicts] - nearby).sum())
        if score < least:
            found, least = width, score
    return found


@dataclass(frozen=True, eq=False)
class Smoothing:
    """A smoothing of labels, and the probabilities that the smoothed labels are compared with."""

    bandwidth: float
    probabilities: Floats
    """shape (N, C), as they are in the targets"""
    is_centred: bool
    """whether probabilities are smoothed as labels are"""
    kernel: "DirichletKernel"

    @classmethod
    def of(
        cls,
        labels: Integers,
        probabilities: Floats,
        bandwidth: float | None,
        *,
        rng: int | np.random.Generator,
    ) -> Self:
        """The smoothing with a given bandwidth, or (None) with a chosen one."""
        if bandwidth is not None:
            return cls(
                bandwidth,
                probabilities,
                is_centred=False,
                kernel=DirichletKernel.of(probabilities, bandwidth),
            )
        generator = np.random.default_rng([rng, 1]) if isinstance(rng, int) else rng
        width = leave_one_out_bandwidth(labels, probabilities, rng=generator)
        kernel = DirichletKernel.of(probabilities, width, floor=FLOOR)
        return cls(width, probabilities, is_centred=True, kernel=kernel)

    def targets(self, labels: Integers) -> Floats:
        """The values that are smoothed for these labels, shape (N, C)."""
        return self._targets(labels, slice(None))

    def _targets(self, labels: Integers, part: slice) -> Floats:
        if self.is_centred:
            return truth_gaps(labels[part], self.probabilities[part])
        return np.eye(self.probabilities.shape[1])[labels[part]]

    def weights_at(self, rows: Integers) -> Floats:
        """Weights (n, N) of all cases at n of them, relative to the largest of each row; 0 of a case at itself."""
        weights = self.kernel.logarithms(rows, slice(0, len(self.probabilities)))
        peaks = weights.max(axis=1, keepdims=True)
        weights -= np.where(np.isfinite(peaks), peaks, 0)
        return np.exp(weights, out=weights)

    def smoothed(self, labels: Integers, rows: Integers) -> Floats:
        """Weighted means of the targets of all cases at n of them, shape (n, C); nan without any weight.

        It is `weights_at` times the targets, in blocks of the cases: neither weights nor targets are ever in memory
        for all of them.
        """
        starts = range(0, rows.size, ROWS_TOGETHER)
        return np.concatenate(
            [self._smoothed(labels, rows[start : start + ROWS_TOGETHER]) for start in starts]
        )

    def _smoothed(self, labels: Integers, rows: Integers) -> Floats:
        samples, classes = self.probabilities.shape
        peaks, totals, sums = np.full(rows.size, -np.inf), np.zeros(rows.size), np.zeros((rows.size, classes))
        for part in blocks(samples, rows.size):
            weights = self.kernel.logarithms(rows, part)
            highest = np.maximum(peaks, weights.max(axis=1))
            shifts = np.where(np.isfinite(highest), highest, 0)
            weights -= shifts[:, np.newaxis]
            np.exp(weights, out=weights)
            # Weights so far were relative to a peak that may be lower.
            factors = np.exp(peaks - shifts)
            totals = totals * factors + weights.sum(axis=1)
            sums = sums * factors[:, np.newaxis] + weights @ self._targets(labels, part)
            peaks = highest
        return sums / np.where(totals > 0, totals, np.nan)[:, np.newaxis]

    @property
    def offsets(self) -> Floats:
        """The values that smoothed targets are compared with, shape (N, C)."""
        return np.zeros_like(self.probabilities) if self.is_centred else self.probabilities


def evaluated_rows(samples: int, subsample: int | None, rng: int | np.random.Generator) -> Integers:
    """Rows over which the mean of `ece_kde` is taken."""
    default = max(FEWEST_EVALUATED, KERNEL_EVALUATIONS // max(samples, 1))
    return draw_subsample(samples, as_subsample(subsample, default), np.random.default_rng(rng))


@dataclass(frozen=True, eq=False)
class DirichletKernel:
    """Densities of Dirichlet(p_i / bandwidth + 1) of all cases i.

    Logarithms, so that nothing overflows and only negligible weights underflow. 0**0 is 1.
    """

    probabilities: Floats
    """shape (N, C)"""
    bandwidth: float
    floor: float
    """least probability; lower ones count as this"""
    normaliser: Floats
    """shape (N,), logarithms of the integrals of the densities before they are normalised, negated"""

    @classmethod
    def of(cls, probabilities: Floats, bandwidth: float, *, floor: float = 0.0) -> Self:
        """The kernel of all cases."""
        normaliser = np.empty(len(probabilities))
        for part in blocks(*probabilities.shape):
            normaliser[part] = _log_normaliser(np.maximum(probabilities[part], floor) / bandwidth)
        return cls(probabilities, bandwidth, floor, normaliser)

    def logarithms(self, rows: Integers, part: slice) -> Floats:
        """Log-densities of a slice of the cases at n of all, shape (n, part); -inf at themselves."""
        points = np.maximum(self.probabilities[rows], self.floor)
        given = np.maximum(self.probabilities[part], self.floor)
        is_zero = points == 0
        found = np.log(np.where(is_zero, 1, points)) @ (given / self.bandwidth).T
        found += self.normaliser[part]
        if is_zero.any():  # 0**0 = 1, and 0**x = 0
            found[is_zero.astype(np.float64) @ (given != 0).T.astype(np.float64) > 0] = -np.inf
        is_own = (rows >= part.start) & (rows < part.stop)
        found[is_own, rows[is_own] - part.start] = -np.inf
        return found


def _log_normaliser(exponents: Floats) -> Floats:
    return log_gamma((exponents + 1).sum(axis=1)) - log_gamma(exponents + 1).sum(axis=1)
