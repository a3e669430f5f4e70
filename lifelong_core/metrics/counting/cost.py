"""The expected cost of decisions, and cost matrices."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import as_confusions, ratio
from lifelong_core.values.arrays import Floats, as_confusion, as_costs, as_prevalence
from lifelong_core.values.errors import InvalidInputError


def naive_decision(
    confusion: ArrayLike, costs: ArrayLike | None = None, *, prevalence: ArrayLike | None = None
) -> int | None:
    """Cheapest constant decision, that of a classifier which ignores the image (thesis Def. 2.26).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions; only the class shares matter.
        costs: shape (C, D), cost of deciding j when i is true; None: 0-1 costs.
        prevalence: shape (C,); None: the class shares of the confusion matrix.

    Returns:
        Index of the decision, the lowest of equally cheap ones; None if there is neither a sample nor a prevalence.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> naive_decision([[8, 2], [1, 4]])
        0
        >>> naive_decision([[8, 2], [1, 4]], [[0, 1], [5, 0]])
        1
    """
    constant = constant_costs(as_confusions(as_confusion(confusion)), costs, prevalence)
    return None if np.isnan(constant).any() else int(np.argmin(constant))


def zero_one_costs(classes: int, decisions_count: int | None = None) -> Floats:
    """Costs of 1 for every wrong decision, abstaining included, shape (C, D) (thesis Def. 2.23).

    Args:
        classes: number of classes C, at least 2.
        decisions_count: number of decisions D, C + 1 where abstaining is one; None: C.

    Raises:
        InvalidInputError: there are fewer than two classes.

    Examples:
        >>> zero_one_costs(2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    return 1 - np.eye(_at_least_two(classes), decisions_count)


def linear_costs(classes: int) -> Floats:
    """Costs of |i - j|, for classes that have an order, shape (C, C).

    Raises:
        InvalidInputError: there are fewer than two classes.

    Examples:
        >>> linear_costs(3).tolist()
        [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    steps = np.arange(float(_at_least_two(classes)))
    return np.abs(steps[:, np.newaxis] - steps)


def quadratic_costs(classes: int) -> Floats:
    """Costs of (i - j)^2, for classes that have an order, shape (C, C).

    Raises:
        InvalidInputError: there are fewer than two classes.

    Examples:
        >>> quadratic_costs(3).tolist()
        [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]
    """
    return linear_costs(classes) ** 2


def costs_of(costs: ArrayLike | None, confusions: Floats) -> Floats:
    """Costs (C, D) of the same decisions as confusion matrices (..., C, D); None: 0-1 costs.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    classes, decisions = confusions.shape[-2:]
    if costs is None:
        return zero_one_costs(classes, decisions)
    matrix = as_costs(costs, classes=classes)
    if matrix.shape != (classes, decisions):
        raise InvalidInputError(
            f"expected the shape of the confusion matrix, {(classes, decisions)}, got {matrix.shape}.",
            field="costs",
        )
    return matrix


def _at_least_two(classes: int) -> int:
    if classes < 2:
        raise InvalidInputError(f"expected at least two classes, got {classes}.", field="classes")
    return classes


def constant_costs(confusions: Floats, costs: ArrayLike | None, prevalence: ArrayLike | None) -> Floats:
    """Expected cost of each constant decision, shape (..., D)."""
    matrix = costs_of(costs, confusions)
    if prevalence is not None:
        return as_prevalence(prevalence, classes=matrix.shape[0]) @ matrix
    sizes = confusions.sum(axis=-1)
    return ratio(sizes @ matrix, sizes.sum(axis=-1, keepdims=True))
