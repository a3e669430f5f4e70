"""Kernel calibration error, which compares nearby predictions instead of bins or equal predictions."""

import math
from math import inf
from typing import Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.samples import as_labelled_probabilities, blocks
from lifelong_core.metrics.scores.scoring_rules import mean_squared_distance, truth_gaps
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats, Integers, as_bandwidth, as_probabilities
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import distances, distances_of_pairs

Estimator: TypeAlias = Literal["unbiased", "biased", "root"]

PAIRED_SAMPLES = 2_000
"""Up to this number of cases all pairs are used; beyond it, the pairs of a random subsample of this size."""
FEWEST_SAMPLES = 3
"""Fewest samples for a jackknife, which leaves one sample out of a pair and one more."""


class Estimate(float):
    """Number that may come from a random subsample, with its standard error.

    Attributes:
        standard_error: standard error around the number of all cases, due to the random subsample; 0 if all cases are
            used, nan if the number is nan.
        samples: number of cases used.

    Examples:
        >>> found = Estimate(0.25, standard_error=0.01, samples=100)
        >>> 2 * found, found.standard_error
        (0.5, 0.01)
        >>> found
        Estimate(0.25, standard_error=0.01, samples=100)
    """

    standard_error: float
    samples: int

    def __new__(cls, value: float, standard_error: float, samples: int) -> Self:
        """Create a number with its error."""
        made = super().__new__(cls, value)
        made.standard_error = standard_error
        made.samples = samples
        return made

    @property
    def value(self) -> float:
        """The number alone."""
        return float(self)

    def __repr__(self) -> str:
        """The call that makes this number."""
        return f"Estimate({self.value}, standard_error={self.standard_error}, samples={self.samples})"


@metric(
    "KCE",
    "Kernel calibration error",
    "All class probabilities together: their distance from how often the classes then occur, by a kernel,"
    " without bins; its unbiased square may be negative.",
    definition="2.69",
    formula="sqrt(E[(e_Y-phi)^T k (e_Y'-phi')])",
    undefined="no sample; fewer than two for the unbiased one; a bandwidth of 0 (constant predictor)",
    bounds=(-inf, inf),
    shown="[0,inf) population; unbiased estimator SKCE in R",
    orientation="down",
    invalid="naive classifier value",
    family="calibration",
)
def kernel_calibration_error(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    estimator: Estimator = "unbiased",
    bandwidth: float | None = None,
    subsample: int | None = None,
    rng: int | np.random.Generator = 0,
) -> Estimate:
    """Kernel calibration error (thesis Def. 2.69) with kernel exp(-||p - q||_2 / bandwidth) I, less is better.

    With h(i, j) = (e_i - p_i)^T k(p_i, p_j) (e_j - p_j): `unbiased` is the mean of h over i != j, `biased` the
    mean over all i, j, and `root` the root of `biased`. The first two estimate the *squared* error; the
    unbiased one is 0 on average for a calibrated model and so may be negative, and `root` is then 0 if it comes
    from a subsample.

    Beyond 2,000 cases, only the pairs of a random subsample are used; the diagonal i = j, which is what
    makes the biased estimate depend on N, is always that of all cases. The standard error is a jackknife,
    rather too large where the model is calibrated. Memory grows with N C, not with N**2.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        estimator: one of the three.
        bandwidth: of the kernel, positive; None: `median_pairwise_distance`.
        subsample: number of cases, 3 or more, whose pairs are used (all, if it is N or more); None: 2,000.
        rng: seed or generator of the subsample.

    Returns:
        The estimate; nan where it is undefined: no case (`unbiased`: fewer than two), or a median distance
        of 0, when predictions hardly differ.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> probabilities = [[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.2, 0.8]]
        >>> round(kernel_calibration_error([1, 1, 0, 0], probabilities, bandwidth=1.0).value, 4)
        0.0614
        >>> round(kernel_calibration_error([0, 1, 0, 1], probabilities, bandwidth=1.0).value, 4)
        -0.158
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    if estimator not in get_args(Estimator):
        raise InvalidInputError(
            f"expected one of {get_args(Estimator)}, got {estimator!r}.", field="estimator"
        )
    generator = np.random.default_rng(rng)
    samples = reference.size
    chosen = draw_subsample(samples, as_subsample(subsample, PAIRED_SAMPLES), generator)
    if bandwidth is None:
        width = median_pairwise_distance(predicted[chosen], rng=generator)
    else:
        width = as_bandwidth(bandwidth, smallest=1 / LARGEST_NUMBER)
    if not width > 0 or chosen.size < (2 if estimator == "unbiased" else 1):
        return Estimate(float("nan"), float("nan"), chosen.size)
    of_pairs = _pair_sums(predicted[chosen], truth_gaps(reference[chosen], predicted[chosen]), width)
    # The mean over all pairs, and those with one case left out.
    sums = np.append(of_pairs.sum(), of_pairs.sum() - 2 * of_pairs)
    left = np.append(chosen.size, np.full(chosen.size, chosen.size - 1))
    values = sums / np.maximum(left * (left - 1), 1)
    if estimator != "unbiased":
        values = ((samples - 1) * values + mean_squared_distance(reference, predicted)) / samples
    squared = Estimate(float(values[0]), _jackknife_error(values[1:], samples), chosen.size)
    return _root(squared) if estimator == "root" else squared


def median_pairwise_distance(probabilities: ArrayLike, *, rng: int | np.random.Generator = 0) -> float:
    """Median of ||p_i - p_j||_2 over all pairs i < j of predictions, in [0, sqrt(2)].

    The usual bandwidth of a kernel. Beyond 2,000 cases, the median of the pairs of a random subsample.

    Args:
        probabilities: shape (N, C).
        rng: seed or generator of the subsample.

    Returns:
        The median; nan where it is undefined: fewer than two cases.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> round(median_pairwise_distance([[1.0, 0.0], [0.4, 0.6], [0.4, 0.6]]), 4)
        0.8485
    """
    predicted = as_probabilities(probabilities)
    chosen = draw_subsample(len(predicted), PAIRED_SAMPLES, np.random.default_rng(rng))
    return float(np.median(distances_of_pairs(predicted[chosen]))) if chosen.size > 1 else float("nan")


def as_subsample(subsample: int | None, default: int) -> int:
    """Check the size of a subsample.

    Raises:
        InvalidInputError: not a whole number of 3 or more.
    """
    if subsample is None:
        return default
    if not subsample >= FEWEST_SAMPLES or int(subsample) != subsample:
        raise InvalidInputError(
            f"expected a whole number of {FEWEST_SAMPLES} or more, got {subsample}.", field="subsample"
        )
    return int(subsample)


def draw_subsample(samples: int, count: int, generator: np.random.Generator) -> Integers:
    """Indices of a random subsample without replacement, ascending; all indices, without a draw, for `count` samples or
    fewer.
    """
    if count >= samples:
        return np.arange(samples)
    return np.sort(generator.choice(samples, size=count, replace=False))


def _pair_sums(probabilities: Floats, gaps: Floats, bandwidth: float) -> Floats:
    """Sum of h(i, j) over j != i, shape (N,); each pair is evaluated once."""
    sums = np.zeros(len(gaps))
    for block in blocks(len(gaps), len(gaps)):
        values = distances(probabilities[block], probabilities[block.start :])
        values /= -bandwidth
        np.exp(values, out=values)
        values *= gaps[block] @ gaps[block.start :].T
        np.fill_diagonal(values, 0)
        sums[block] += values.sum(axis=1)
        sums[block.stop :] += values[:, block.stop - block.start :].sum(axis=0)
    return sums


def _jackknife_error(without_one: Floats, population: int) -> float:
    """Standard error of a statistic of n of `population` cases from its n values with one left out."""
    samples = without_one.size
    return math.sqrt((samples - 1) * float(without_one.var()) * (1 - samples / population))


def _root(squared: Estimate) -> Estimate:
    """Root, 0 for negative values, with its error; where the slope is infinite, the error is that of the root."""
    value, error = math.sqrt(max(squared.value, 0)), squared.standard_error
    if error > 0:
        error /= max(2 * value, math.sqrt(error))
    return Estimate(value, error, squared.samples)
