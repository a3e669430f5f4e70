"""The expected cost of decisions."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import as_confusion, as_costs, as_prevalence
from lifelong_core.errors import InvalidInputError


def expected_cost(confusion: ArrayLike, costs: ArrayLike, *, prevalence: ArrayLike | None = None) -> float:
    """Mean cost of a decision, sum_i P(i) sum_j costs[i, j] R[i, j] (thesis Def. 2.23 and Prop. 2.25).

    R are the row-normalised counts. The prevalence P can be replaced, which predicts the cost in another
    population with the same images per class (thesis section 6.1.3, step 3).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions.
        costs: shape (C, D), cost of deciding j when i is true.
        prevalence: shape (C,); None: the class shares of the confusion matrix.

    Returns:
        The expected cost; nan where it is undefined: no sample at all, or none of a class with positive
        prevalence.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> expected_cost([[8, 2], [1, 9]], [[0, 1], [5, 0]])
        0.35
        >>> round(expected_cost([[8, 2], [1, 9]], [[0, 1], [5, 0]], prevalence=[0.9, 0.1]), 3)
        0.23
    """
    counts = as_confusion(confusion)
    matrix = as_costs(costs, classes=counts.shape[0])
    if matrix.shape != counts.shape:
        raise InvalidInputError(
            f"expected the shape of the confusion matrix, {counts.shape}, got {matrix.shape}.", field="costs"
        )
    sizes = counts.sum(axis=1)
    if prevalence is None:
        total = sizes.sum()
        return float((counts * matrix).sum() / total) if total > 0 else float("nan")
    shares = as_prevalence(prevalence, classes=counts.shape[0])
    if ((sizes == 0) & (shares > 0)).any():
        return float("nan")
    rates = counts / np.where(sizes > 0, sizes, 1)[:, np.newaxis]
    return float(shares @ (rates * matrix).sum(axis=1))
