"""Calibration of each class's probability in two numbers: the calibration slope, and the O:E ratio."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.arrays import Floats, Integers, Mask
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.scores.labelled_probabilities import as_labelled_probabilities

SMALLEST = 1e-12
"""Probabilities are taken as at least this, and as at most 1 less it: the logit of 0 is infinite"""
ITERATIONS = 60
TOLERANCE = 1e-9

Weighted = Callable[[NDArray[np.integer]], Floats]


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
    once = np.ones((1, reference.size), np.int64)
    return np.array([weighted_slope(p, reference == k)(once)[0] for k, p in enumerate(predicted.T)])


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
    once = np.ones((1, reference.size), np.int64)
    return np.array([weighted_ratio(p, reference == k)(once)[0] for k, p in enumerate(predicted.T)])


def weighted_ratio(scores: Floats, is_class: Mask) -> Weighted:
    """O:E as a function of how often each case counts, (B, N); values (B,)."""
    hits = is_class.astype(np.float64)
    return lambda weights: ratio(weights @ hits, weights @ scores)


def weighted_slope(scores: Floats, is_class: Mask) -> Weighted:
    """Calibration slope as a function of how often each case counts, (B, N); values (B,)."""
    clipped = np.clip(scores, SMALLEST, 1 - SMALLEST)
    logits = np.log(clipped) - np.log1p(-clipped)

    def evaluate(weights: NDArray[np.integer]) -> Floats:
        return np.array([_slope(logits, is_class, row) for row in weights])

    return evaluate


def _slope(logits: Floats, is_class: Mask, weights: Integers | NDArray[np.integer]) -> float:
    used = weights > 0
    x, y, w = logits[used], is_class[used], weights[used].astype(np.float64)
    if not y.any() or y.all() or x.min() == x.max():
        return float("nan")
    if x[y].min() >= x[~y].max():
        return float("inf")
    if x[y].max() <= x[~y].min():
        return float("-inf")
    centre, scale = np.average(x, weights=w), np.sqrt(np.cov(x, aweights=w, ddof=0))
    return _newton((x - centre) / scale, y.astype(np.float64), w) / float(scale)


def _newton(x: Floats, y: Floats, weights: Floats) -> float:
    """Slope of a logistic regression on standardised x, by Newton's method with halved steps."""
    share = np.average(y, weights=weights)
    intercept, slope = float(np.log(share / (1 - share))), 0.0
    loss = _loss(x, y, weights, intercept, slope)
    for _ in range(ITERATIONS):
        expected = 1 / (1 + np.exp(-(intercept + slope * x)))
        gap, spread = weights * (y - expected), weights * expected * (1 - expected)
        gradient = np.array([gap.sum(), gap @ x])
        across = spread @ x
        hessian = np.array([[spread.sum(), across], [across, spread @ (x * x)]])
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        size, moved = 1.0, _loss(x, y, weights, intercept + step[0], slope + step[1])
        while moved > loss and size > TOLERANCE:
            size /= 2
            moved = _loss(x, y, weights, intercept + size * step[0], slope + size * step[1])
        intercept, slope, loss = intercept + float(size * step[0]), slope + float(size * step[1]), moved
        if float(np.abs(size * step).max()) < TOLERANCE:
            break
    return float(slope)


def _loss(x: Floats, y: Floats, weights: Floats, intercept: float, slope: float) -> float:
    scores = intercept + slope * x
    return float(weights @ (np.logaddexp(0, scores) - y * scores))
