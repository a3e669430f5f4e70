"""Metrics of the whole confusion matrix: one number for all classes.

Each metric has a singular function for one confusion matrix, and a plural one for an array of matrices, such as
resampled ones. Where abstaining is a decision, the last column is wrong for every class.
"""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import OneVersusRest, as_confusions, ratio
from lifelong_core.metrics.counting.cost import costs_of, expected_costs
from lifelong_core.metrics.counting.one_versus_rest import sensitivity
from lifelong_core.values.arrays import Floats, as_confusion


def accuracy(confusion: ArrayLike) -> float:
    """Share of samples with a right decision (AC; thesis Def. 2.18).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions; abstaining counts as wrong.

    Returns:
        A number in [0, 1], high is good; nan without any sample.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> accuracy([[1, 1], [0, 2]])
        0.75
    """
    return float(accuracies(as_confusion(confusion)))


def accuracies(confusions: ArrayLike) -> Floats:
    """`accuracy` of each matrix of an array (..., C, D), shape (...)."""
    counts = as_confusions(confusions)
    return ratio(_diagonal(counts).sum(axis=-1), counts.sum(axis=(-2, -1)))


def error_rate(confusion: ArrayLike) -> float:
    """Share of samples with a wrong decision, 1 - AC (ER; thesis Def. 2.18).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions; abstaining counts as wrong.

    Returns:
        A number in [0, 1], low is good; nan without any sample.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> error_rate([[1, 1], [0, 2]])
        0.25
    """
    return float(error_rates(as_confusion(confusion)))


def error_rates(confusions: ArrayLike) -> Floats:
    """`error_rate` of each matrix of an array (..., C, D), shape (...)."""
    return expected_costs(confusions)


def balanced_accuracy(confusion: ArrayLike) -> float:
    """Mean of the classes' sensitivities: the accuracy for equally frequent classes (BA; thesis Def. 2.21).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions; abstaining counts as wrong.

    Returns:
        A number in [0, 1], high is good, 1 / C for a constant decision; nan if a class has no sample.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> balanced_accuracy([[8, 2], [2, 2]])
        0.65
    """
    return float(balanced_accuracies(as_confusion(confusion)))


def balanced_accuracies(confusions: ArrayLike) -> Floats:
    """`balanced_accuracy` of each matrix of an array (..., C, D), shape (...)."""
    return sensitivity(confusions).mean(axis=-1)


def weighted_cohen_kappa(confusion: ArrayLike, costs: ArrayLike) -> float:
    """Relative saving of the decisions over independent ones with the same frequencies (WCK; thesis Def. 2.30).

    1 - EC / sum_ij costs[i, j] P(i) B(j), where P are the shares of the classes and B those of the decisions.

    Args:
        confusion: shape (C, D), rows true classes, columns decisions.
        costs: shape (C, D), cost of deciding j when i is true.

    Returns:
        At most 1 for costs that are not negative, high is good, 0 for a constant decision; at least -1 only for
        0-1, linear and quadratic costs. nan if even independent decisions would cost nothing, as these do.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> weighted_cohen_kappa([[0, 5], [95, 0]], [[0, 1], [0, 0]])
        -19.0
    """
    return float(weighted_cohen_kappas(as_confusion(confusion), costs))


def weighted_cohen_kappas(confusions: ArrayLike, costs: ArrayLike | None = None) -> Floats:
    """`weighted_cohen_kappa` of each matrix of an array (..., C, D), shape (...); without costs, `cohen_kappa`."""
    counts = as_confusions(confusions)
    weights = costs_of(costs, counts)
    reference, decided = counts.sum(axis=-1), counts.sum(axis=-2)
    independent = ((reference @ weights) * decided).sum(axis=-1)
    return 1 - ratio((counts * weights).sum(axis=(-2, -1)) * reference.sum(axis=-1), independent)


def cohen_kappa(confusion: ArrayLike) -> float:
    """Share of the possible agreement beyond chance: WCK with 0-1 costs (CK; thesis Def. 2.30).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions; abstaining counts as wrong.

    Returns:
        A number in [-1, 1], high is good, 0 for a constant decision; nan if there is only one class on both sides.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> cohen_kappa([[3, 1], [1, 3]])
        0.5
    """
    return float(cohen_kappas(as_confusion(confusion)))


def cohen_kappas(confusions: ArrayLike) -> Floats:
    """`cohen_kappa` of each matrix of an array (..., C, D), shape (...)."""
    return weighted_cohen_kappas(confusions)


def matthews_correlation(confusion: ArrayLike) -> float:
    """Correlation of true classes and decisions, as generalised by Gorodkin (MCC; thesis Def. 2.49).

    Args:
        confusion: shape (C, D), rows true classes, columns decisions; abstaining counts as wrong.

    Returns:
        A number in [-1, 1], high is good, 0 for independent decisions; nan if there is only one true class or only
        one decision.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> matthews_correlation([[3, 1], [1, 3]])
        0.5
        >>> matthews_correlation([[0, 10], [0, 90]])
        nan
    """
    return float(matthews_correlations(as_confusion(confusion)))


def matthews_correlations(confusions: ArrayLike) -> Floats:
    """`matthews_correlation` of each matrix of an array (..., C, D), shape (...)."""
    counts = as_confusions(confusions)
    covariance = OneVersusRest.of(counts).determinant.sum(axis=-1)
    spread = _spread(counts.sum(axis=-1)) * _spread(counts.sum(axis=-2))
    return ratio(covariance, np.sqrt(spread))


def _diagonal(counts: Floats) -> Floats:
    return np.diagonal(counts, axis1=-2, axis2=-1)


def _spread(sizes: Floats) -> Floats:
    """N^2 (1 - sum of the squared shares); exactly 0 if only one size is not 0."""
    return (sizes * (sizes.sum(axis=-1, keepdims=True) - sizes)).sum(axis=-1)
