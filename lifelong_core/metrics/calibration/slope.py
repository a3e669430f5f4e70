"""Calibration of each class's probability in two numbers: the calibration slope, and the O:E ratio."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.samples import as_labelled_probabilities
from lifelong_core.values.arrays import Floats, Mask

SMALLEST = 1e-12
"""Probabilities are taken as at least this, and as at most 1 less it: the logit of 0 is infinite"""
ITERATIONS = 60
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Influenced:
    """A number with the influence of each case on it."""

    value: float
    """nan where it is undefined"""
    influences: Floats
    """shape (N,), sum 0: the variance of the value is the sum of their squares, of their sums by group where cases
    depend on each other; nan where there is no variance"""


@metric(
    "CS",
    "Calibration slope",
    "Slope of the truth on the log odds: below 1 the probabilities are too extreme, above 1 too moderate.",
    definition="Van Calster et al. 2019",
    formula="b of logit P(y=k)=a+b logit(p_k)",
    undefined="no reference sample of the class, or none of another; one probability for all",
    bounds=(-inf, inf),
    orientation="one",
    scope="per class",
    invalid="none: of valid outputs only",
    family="calibration-agreement",
)
def calibration_slope(labels: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Calibration slope of each class against the rest (CS; Van Calster et al. 2019, level "weak"), best is 1.

    The slope b of the logistic regression logit P(y = k) = a + b logit(p_k), fitted with its intercept a by maximum
    likelihood. Below 1, the probabilities are too extreme (the model is over-confident); above 1, they are too close to
    each other; below 0, they are turned round. Probabilities of 0 and 1 count as 1e-12 and 1 - 1e-12.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        Shape (C,). Infinite if every case of the class has at least the probability of every other case (minus
        infinite if it has at most that). nan where it is undefined: no case of the class, or no other one, or one
        probability for all.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> positive = np.repeat([0.2, 0.8], 10)
        >>> labels = np.repeat([0, 1, 0, 1], [6, 4, 4, 6])
        >>> calibration_slope(labels, np.stack([1 - positive, positive], axis=1)).round(4).tolist()
        [0.2925, 0.2925]
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    return np.array([slope_of_class(p, reference == k).value for k, p in enumerate(predicted.T)])


@metric(
    "O:E",
    "Observed to expected ratio",
    "Cases of the class over the sum of its probabilities: above 1 it is predicted too rarely.",
    definition="Van Calster et al. 2019",
    formula="n_k/sum_i p_ik",
    undefined="no sample; a class that neither occurs nor is expected",
    bounds=(0, inf),
    orientation="one",
    scope="per class",
    invalid="none: of valid outputs only",
    family="calibration-agreement",
)
def observed_expected_ratio(labels: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Number of cases of each class over the number that is expected (O:E; Van Calster et al. 2019), best is 1.

    The expected number is the sum of the class's probabilities. Below 1, the class is predicted too often; above 1,
    too rarely. It is the calibration "in the large": a ratio of 1 says nothing about single cases.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).

    Returns:
        Shape (C,); infinite for a class that occurs and has probability 0 everywhere. nan where it is undefined: no
        case, or a class that neither occurs nor is expected.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> observed_expected_ratio([0, 1, 1, 1], [[0.5, 0.5]] * 4).tolist()
        [0.5, 1.5]
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    return np.array([ratio_of_class(p, reference == k).value for k, p in enumerate(predicted.T)])


def ratio_of_class(scores: Floats, is_class: Mask) -> Influenced:
    """O:E of one class's probabilities, shape (N,); influences are those on its logarithm (Debray et al. 2017)."""
    observed, expected = float(is_class.sum()), float(scores.sum())
    value = float(ratio(observed, expected))
    if observed == 0 or expected == 0:
        return Influenced(value, np.full(scores.size, np.nan))
    return Influenced(value, is_class / observed - scores / expected)


def slope_of_class(scores: Floats, is_class: Mask) -> Influenced:
    """Calibration slope of one class's probabilities, shape (N,).

    Influences are those of the logistic regression, so that sums of their squares are its sandwich variance, which also
    holds where the logit is not linear.
    """
    clipped = np.clip(scores, SMALLEST, 1 - SMALLEST)
    logits, unknown = np.log(clipped) - np.log1p(-clipped), np.full(scores.size, np.nan)
    if not is_class.any() or is_class.all() or logits.min() == logits.max():
        return Influenced(float("nan"), unknown)
    if logits[is_class].min() >= logits[~is_class].max():
        return Influenced(float("inf"), unknown)
    if logits[is_class].max() <= logits[~is_class].min():
        return Influenced(float("-inf"), unknown)
    scale = float(logits.std())
    x: Floats = (logits - float(logits.mean())) / scale
    hits: Floats = is_class.astype(np.float64)
    intercept, slope = _newton(x, hits)
    expected: Floats = 1 / (1 + np.exp(-(intercept + slope * x)))
    design: Floats = np.stack([np.ones(x.size), x], axis=1)
    hessian = design.T @ (design * (expected * (1 - expected))[:, np.newaxis])
    # The row of the inverse Hessian that belongs to the slope.
    row: Floats = np.linalg.lstsq(hessian, np.array([0.0, 1.0]), rcond=None)[0].astype(np.float64)
    moves: Floats = (design @ row) * (hits - expected)
    return Influenced(slope / scale, moves / scale)


def _newton(x: Floats, y: Floats) -> tuple[float, float]:
    """Intercept and slope of a logistic regression on standardised x, by Newton's method with halved steps."""
    share = y.mean()
    intercept, slope = float(np.log(share / (1 - share))), 0.0
    loss = _loss(x, y, intercept, slope)
    for _ in range(ITERATIONS):
        expected = 1 / (1 + np.exp(-(intercept + slope * x)))
        gap, spread = y - expected, expected * (1 - expected)
        gradient = np.array([gap.sum(), gap @ x])
        across = spread @ x
        hessian = np.array([[spread.sum(), across], [across, spread @ (x * x)]])
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        size, moved = 1.0, _loss(x, y, intercept + step[0], slope + step[1])
        while moved > loss and size > TOLERANCE:
            size /= 2
            moved = _loss(x, y, intercept + size * step[0], slope + size * step[1])
        intercept, slope, loss = intercept + float(size * step[0]), slope + float(size * step[1]), moved
        if float(np.abs(size * step).max()) < TOLERANCE:
            break
    return intercept, slope


def _loss(x: Floats, y: Floats, intercept: float, slope: float) -> float:
    scores = intercept + slope * x
    return float((np.logaddexp(0, scores) - y * scores).sum())
