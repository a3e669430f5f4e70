"""The decision rule that minimises the expected cost."""

from numpy.typing import ArrayLike

from lifelong_core.decision_rules.executed import LeastCost
from lifelong_core.values.arrays import Integers, as_costs, as_probabilities

ABSTAIN = "abstain"
"""Name of the decision to abstain, which follows the classes where the costs have it."""


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
    return LeastCost.of(as_costs(costs, classes=rows.shape[1])).decide(rows)
