"""Metrics of the whole confusion matrix: one number for all classes.

Each metric has a singular function for one confusion matrix, and a plural one for an array of matrices, such as
resampled ones. Where abstaining is a decision, the last column is wrong for every class.
"""

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import OneVersusRest, as_confusions, ratio
from lifelong_core.metrics.counting.cost import constant_costs, costs_of
from lifelong_core.metrics.counting.one_versus_rest import sensitivity
from lifelong_core.metrics.declaration import metric
from lifelong_core.values.arrays import Floats, as_confusion, as_prevalence


@metric(
    "AC",
    "Accuracy",
    "How often the decision is right.",
    definition="2.18",
    formula="sum_i a_ii/N",
    undefined="no sample",
)
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


@metric(
    "ER",
    "Error rate",
    "How often the decision is wrong.",
    definition="2.18",
    formula="1-AC",
    undefined="no sample",
    orientation="down",
)
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


@metric(
    "BA",
    "Balanced accuracy",
    "How often the decision is right where every class counts the same, however frequent it is.",
    definition="2.21",
    formula="mean_k TPR_k",
    undefined="a class without reference sample",
    prevalence_dependent=False,
)
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


@metric(
    "EC",
    "Expected cost",
    "What a decision costs on average, with a cost for every confusion.",
    definition="2.23",
    formula="sum c_ij a_ij/N = sum_i P(i) sum_j c_ij R_ij",
    undefined="no sample; with target prevalences: none of a class whose prevalence is positive",
    bounds=(-inf, inf),
    shown="(-inf,inf); [0,inf) for c>=0",
    orientation="down",
    invalid="naive classifier value",
)
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


@metric(
    "NEC",
    "Normalised expected cost",
    "The expected cost in units of the best decision that ignores the image; above 1 is worse than that.",
    definition="2.27",
    formula="EC/min_j sum_i c_ij P(i)",
    undefined="as EC; 0/0 where neither the decisions nor the naive classifier cost anything",
    bounds=(-inf, inf),
    shown="(-inf,inf); [0,inf) for c>=0",
    orientation="down",
    invalid="1 (= naive)",
)
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
    constant = constant_costs(as_confusions(confusions), costs, prevalence)
    return ratio(expected_costs(confusions, costs, prevalence=prevalence), constant.min(axis=-1))


@metric(
    "WCK",
    "Weighted Cohen kappa",
    "By how much the decisions cost less than decisions of the same frequencies drawn at random.",
    definition="2.30",
    formula="1-(sum c_ij a_ij/N)/(sum c_ij P(i)B(j))",
    undefined="no sample; 0/0 where chance costs nothing (one class on both sides)",
    bounds=(-inf, 1),
    shown="(-inf,1] for c>=0; [-1,1] only for 0-1, linear, quadratic costs",
    invalid="-1 for 0-1/linear/quadratic costs, else naive (0)",
)
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


@metric(
    "CK",
    "Cohen kappa",
    "By how much the decisions agree with the reference beyond chance.",
    definition="2.30",
    formula="WCK with 0-1 costs",
    undefined="no sample; 0/0 where one class is all of the reference and of the decisions",
    bounds=(-1, 1),
)
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


@metric(
    "MCC",
    "Matthews correlation",
    "Correlation of decision and reference; 0 is guessing.",
    definition="2.49",
    formula="(AC-sum P B)/sqrt((1-sum P^2)(1-sum B^2))",
    undefined="no sample; 0/0 where the reference or the decisions hold one class only",
    bounds=(-1, 1),
)
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
