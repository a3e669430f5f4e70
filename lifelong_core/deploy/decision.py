"""The decision rule that minimises the expected cost."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers, as_costs, as_probabilities

_UNIT = float(np.finfo(np.float64).eps)


def bayes_decisions(probabilities: ArrayLike, costs: ArrayLike) -> Integers:
    """The decision with the smallest expected cost, for each sample (thesis Def. 6.9).

    argmin_k sum_j costs[j, k] * probabilities[j]; of several such decisions the first. Sums that differ by no
    more than their own rounding error count as equal. With 0-1 costs nothing is rounded: the rule is argmax,
    bit by bit.

    Args:
        probabilities: shape (N, C), rows on the simplex.
        costs: shape (C, D), D = C or C + 1 (abstain): cost of deciding k when j is true.

    Returns:
        Decisions of shape (N,), 0..D-1.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> bayes_decisions([[0.8, 0.2], [0.5, 0.5]], [[0, 1], [1, 0]]).tolist()
        [0, 0]
        >>> bayes_decisions([[0.8, 0.2]], [[0, 1], [10, 0]]).tolist()  # missing class 1 is dear
        [1]
        >>> bayes_decisions([[0.6, 0.4]], [[0, 1, 0.3], [1, 0, 0.3]]).tolist()  # abstaining costs 0.3
        [2]
    """
    rows = as_probabilities(probabilities)
    return cheapest(rows, as_costs(costs, classes=rows.shape[1]))


def cheapest(probabilities: Floats, costs: Floats) -> Integers:
    """`bayes_decisions` for arguments that were checked before."""
    # A constant per true class changes every decision's cost alike. Taken off, 0-1 costs become minus the
    # identity.
    relative = costs - costs.max(axis=1, keepdims=True)
    expected = expected_costs(probabilities, relative)
    slack = _rounding_error(relative)
    best = expected.argmin(axis=1)[:, np.newaxis]
    limit = np.take_along_axis(expected, best, axis=1) + slack[best]
    return (expected - slack <= limit).argmax(axis=1).astype(np.int64)


def expected_costs(probabilities: Floats, costs: Floats) -> Floats:
    """sum_j costs[j, k] * probabilities[:, j], shape (N, D).

    Summed class by class with element-wise operations: a row's result is the same to the last bit whatever
    else is in the batch, which a matrix product does not promise (its kernels depend on the shape).
    """
    total = np.zeros((probabilities.shape[0], costs.shape[1]))
    for column, row in zip(probabilities.T, costs, strict=True):
        total += column[:, np.newaxis] * row
    return total


def _rounding_error(costs: Floats) -> Floats:
    """Bound of each decision's rounding error: one unit per inexact product or addition."""
    terms = (costs != 0).sum(axis=0)
    mantissa, _ = np.frexp(costs)
    inexact_products = ((costs != 0) & (np.abs(mantissa) != 0.5)).sum(axis=0)
    additions = np.maximum(terms - 1, 0)
    return (additions + inexact_products) * _UNIT * np.abs(costs).max(axis=0)
