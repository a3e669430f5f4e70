"""The decision rule that minimises the expected cost."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers, as_costs, as_probabilities

ABSTAIN = "abstain"
"""Name of the decision to abstain, which follows the classes where the costs have it."""
_UNIT = float(np.finfo(np.float64).eps)


def bayes_decisions(probabilities: ArrayLike, costs: ArrayLike) -> Integers:
    """The decision with the smallest expected cost, for each sample (thesis Def. 6.9).

    It is argmin_k sum_j costs[j, k] * probabilities[j], and the first one in a tie. Sums that differ by no more than
    their rounding error count as a tie. With 0-1 costs nothing is rounded: the rule equals argmax, bit by bit.

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
    return DecisionRule.of(as_costs(costs, classes=rows.shape[1])).decide(rows)


@dataclass(frozen=True)
class DecisionRule:
    """Rule of `bayes_decisions` for one cost matrix, prepared once."""

    relative: Floats
    """shape (C, D): the costs less the largest of their row, which changes the cost of every decision alike; 0-1 costs
    become minus the identity, whose sums are exact"""
    slack: Floats
    """shape (D,): bound of the rounding error of each decision's sum, one unit per inexact product or addition"""

    @classmethod
    def of(cls, costs: Floats) -> Self:
        """The rule for these costs, shape (C, D)."""
        relative = costs - costs.max(axis=1, keepdims=True)
        mantissa, _ = np.frexp(relative)
        inexact_products = ((relative != 0) & (np.abs(mantissa) != 0.5)).sum(axis=0)
        additions = np.maximum((relative != 0).sum(axis=0) - 1, 0)
        return cls(relative, (additions + inexact_products) * _UNIT * np.abs(relative).max(axis=0))

    def decide(self, probabilities: Floats) -> Integers:
        """Decisions of shape (N,) for checked probabilities."""
        expected = expected_costs(probabilities, self.relative)
        best = expected.argmin(axis=1)[:, np.newaxis]
        limit = np.take_along_axis(expected, best, axis=1) + self.slack[best]
        return (expected - self.slack <= limit).argmax(axis=1).astype(np.int64)


def expected_costs(probabilities: Floats, costs: Floats) -> Floats:
    """Expected cost of each decision, sum_j costs[j, k] * probabilities[:, j], shape (N, D).

    The sum runs class by class with element-wise operations, so that a row's result does not depend on the rest of the
    batch, to the last bit. A matrix product does not guarantee this: its kernels depend on the shape.
    """
    total = np.zeros((probabilities.shape[0], costs.shape[1]))
    for column, row in zip(probabilities.T, costs, strict=True):
        total += column[:, np.newaxis] * row
    return total
