"""The expected cost of decisions, and cost matrices."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import as_confusions, ratio
from lifelong_core.values.arrays import Floats, as_confusion, as_costs, as_prevalence
from lifelong_core.values.errors import InvalidInputError


def expected_cost(confusion: ArrayLike, costs: ArrayLike, *, prevalence: ArrayLike | None = None) -> float:
    """Mean cost of a decision, sum_i P(i) sum_j costs[i, j] R[i, j] (EC; thesis Def. 2.23 and Prop. 2.25).

    R are the row-normalised counts. The prevalence P can be replaced, which predicts the cost in another
    population with the same images per class (thesis section 6.1.3, step 3).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions.
        costs: shape (C, D), cost of deciding j when i is true.
        prevalence: shape (C,); None: the class shares of the confusion matrix.

    Returns:
        The expected cost, low is good; nan where it is undefined: no sample at all, or none of a class with
        positive prevalence.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> expected_cost([[8, 2], [1, 9]], [[0, 1], [5, 0]])
        0.35
        >>> round(expected_cost([[8, 2], [1, 9]], [[0, 1], [5, 0]], prevalence=[0.9, 0.1]), 3)
        0.23
    """
    return float(expected_costs(as_confusion(confusion), costs, prevalence=prevalence))


def expected_costs(
    confusions: ArrayLike, costs: ArrayLike | None = None, *, prevalence: ArrayLike | None = None
) -> Floats:
    """`expected_cost` of each matrix of an array (..., C, D), shape (...); without costs, `error_rate`."""
    counts = as_confusions(confusions)
    matrix = costs_of(costs, counts)
    sizes = counts.sum(axis=-1)
    if prevalence is None:
        return ratio((counts * matrix).sum(axis=(-2, -1)), sizes.sum(axis=-1))
    shares = as_prevalence(prevalence, classes=sizes.shape[-1])
    by_class = ratio((counts * matrix).sum(axis=-1), sizes)
    return np.where(shares > 0, shares * by_class, 0.0).sum(axis=-1)


def normalised_expected_cost(
    confusion: ArrayLike, costs: ArrayLike | None = None, *, prevalence: ArrayLike | None = None
) -> float:
    """Expected cost relative to that of the cheapest constant decision (NEC; thesis Def. 2.27).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions.
        costs: shape (C, D), cost of deciding j when i is true; None: 0-1 costs.
        prevalence: shape (C,); None: the class shares of the confusion matrix.

    Returns:
        Low is good; above 1 where a constant decision is cheaper (for costs that are not negative). nan where
        the expected cost is nan, or if both costs are 0; infinite if only the constant decision is free.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> normalised_expected_cost([[0, 1], [1, 10000]])
        2.0
    """
    return float(normalised_expected_costs(as_confusion(confusion), costs, prevalence=prevalence))


def normalised_expected_costs(
    confusions: ArrayLike, costs: ArrayLike | None = None, *, prevalence: ArrayLike | None = None
) -> Floats:
    """`normalised_expected_cost` of each matrix of an array (..., C, D), shape (...)."""
    constant = _constant_costs(as_confusions(confusions), costs, prevalence)
    return ratio(expected_costs(confusions, costs, prevalence=prevalence), constant.min(axis=-1))


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
    constant = _constant_costs(as_confusions(as_confusion(confusion)), costs, prevalence)
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


def _constant_costs(confusions: Floats, costs: ArrayLike | None, prevalence: ArrayLike | None) -> Floats:
    """Expected cost of each constant decision, shape (..., D)."""
    matrix = costs_of(costs, confusions)
    if prevalence is not None:
        return as_prevalence(prevalence, classes=matrix.shape[0]) @ matrix
    sizes = confusions.sum(axis=-1)
    return ratio(sizes @ matrix, sizes.sum(axis=-1, keepdims=True))
