"""The expected cost of decisions, and cost matrices."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import OneVersusRest, as_confusions, ratio, reweight_classes
from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.samples import as_class, as_labelled_probabilities, as_values, columns_of
from lifelong_core.values.arrays import Floats, Integers, as_confusion, as_costs, as_prevalence, read_only
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


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit by threshold, of a model and of treating all cases; that of treating none is 0 (thesis Def. 2.57)."""

    thresholds: Floats
    """shape (T,), in the order in which they were given"""
    net_benefit: Floats
    """shape (T,), net benefit of deciding for the class where its probability is at least the threshold"""
    treat_all: Floats
    """shape (T,), net benefit of always deciding for the class"""


@metric(
    "NB",
    "Net benefit",
    "Cases found, less false alarms at the exchange rate of the probability at which one would act.",
    definition="2.57",
    formula="TP/N-FP/N*t/(1-t)",
    undefined="no sample; t = 1",
    bounds=(-inf, 1),
    shown="(-inf,P(1)]",
    scope="per class (binary)",
    invalid="naive: max(0, NB of treat-all)",
)
def net_benefit(confusion: ArrayLike, *, threshold: float, prevalence: ArrayLike | None = None) -> Floats:
    """True positives minus false positives per sample, TP / N - FP / N t / (1 - t) (NB; thesis Def. 2.57).

    A threshold of t means that a false positive is t / (1 - t) times as bad as a true positive is good. NB = P(class)
    - EC with costs of 1 for a false negative and t / (1 - t) for a false positive.

    Args:
        confusion: shape (C, D), or (..., C, D), of decisions made with this threshold.
        threshold: t, in [0, 1].
        prevalence: shape (C,), class shares of another population with the same rates within each class, where NB =
            P(class) TPR - P(rest) FPR t / (1 - t) (thesis Remark 2.58); None: the shares of the confusion matrix.

    Returns:
        Shape (C,), or (..., C): each class against the rest, at most its prevalence, high is good, 0 for never
        deciding for the class. nan without any sample, without one of a class that has a prevalence, and for t = 1.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> net_benefit([[4, 1], [2, 3]], threshold=0.2).tolist()
        [0.35, 0.275]
        >>> net_benefit([[4, 1], [2, 3]], threshold=0.2, prevalence=[0.9, 0.1]).round(3).tolist()
        [0.71, 0.015]
    """
    counts = as_confusions(confusion) if prevalence is None else reweight_classes(confusion, prevalence)
    of_class, total = OneVersusRest.of(counts), counts.sum(axis=(-2, -1))[..., np.newaxis]
    rate = _exchange_rate(threshold)
    return ratio(of_class.true_positives - of_class.false_positives * rate, total)


def net_benefit_from_probabilities(
    labels: ArrayLike, probabilities: ArrayLike, *, threshold: float
) -> Floats:
    """`net_benefit` of deciding for a class where its probability is at least the threshold (NB; thesis Def. 2.57).

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        threshold: t, in [0, 1].

    Returns:
        Shape (C,): each class against the rest, at most its prevalence, high is good. nan without any sample, and for
        t = 1.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> probabilities = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]]
        >>> net_benefit_from_probabilities([0, 1, 1, 1], probabilities, threshold=0.5).tolist()
        [0.0, 0.5]
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    rate = _exchange_rate(threshold)
    classes = predicted.shape[1]
    is_found = predicted[np.arange(reference.size), reference] >= threshold
    true = np.bincount(reference[is_found], minlength=classes).astype(np.float64)
    decided = np.array([np.count_nonzero(column >= threshold) for column in columns_of(predicted)])
    return ratio(true - (decided - true) * rate, float(reference.size))


def decision_curve(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    positive: int,
    thresholds: ArrayLike | None = None,
    prevalence: ArrayLike | None = None,
) -> DecisionCurve:
    """Net benefit of one class against the rest, for many thresholds (thesis Def. 2.57).

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        positive: index of the class.
        thresholds: shape (T,), in [0, 1]; None: 0, 0.01, ..., 0.99.
        prevalence: shape (C,), class shares of another population with the same rates within each class; the
            probabilities have to hold for it (`corrected_probabilities`). None: the shares of the labels.

    Returns:
        The curve; nan without any sample, without one of a class that has a prevalence, and at threshold 1.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> probabilities = [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]]
        >>> curve = decision_curve([0, 1, 1, 1], probabilities, positive=1, thresholds=[0.2, 0.5])
        >>> curve.net_benefit.tolist(), curve.treat_all.tolist()
        ([0.75, 0.5], [0.6875, 0.5])
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    chosen = as_class(positive, classes=predicted.shape[1])
    given = np.arange(100) / 100 if thresholds is None else thresholds
    limits = as_values(given, field="thresholds", low=0, high=1).copy()
    rates = _exchange_rates(limits)
    scores, is_class = predicted[:, chosen], reference == chosen
    if prevalence is None:
        found, alarms = (_at_least(scores[part], limits) for part in (is_class, ~is_class))
        total, positives = float(reference.size), float(is_class.sum())
    else:
        shares = as_prevalence(prevalence, classes=predicted.shape[1])
        found, alarms = _shares_at_least(scores, reference, shares, chosen, limits)
        total, positives = 1.0, float(shares[chosen])
    return DecisionCurve(
        thresholds=read_only(limits),
        net_benefit=read_only(ratio(found - alarms * rates, total)),
        treat_all=read_only(ratio(positives - (total - positives) * rates, total)),
    )


def _at_least(scores: Floats, limits: Floats) -> Floats:
    """Number of scores at or above each limit."""
    return (scores.size - np.searchsorted(np.sort(scores), limits, side="left")).astype(np.float64)


def _shares_at_least(
    scores: Floats, labels: Integers, prevalence: Floats, chosen: int, limits: Floats
) -> tuple[Floats, Floats]:
    """Shares of a population at or above each limit: cases of the class, and all others."""
    by_class = [
        share * ratio(_at_least(scores[labels == k], limits), float((labels == k).sum()))
        if share > 0
        else np.zeros(limits.size)
        for k, share in enumerate(prevalence)
    ]
    found = by_class.pop(chosen)
    return found, np.sum(by_class, axis=0)


def _exchange_rate(threshold: float) -> float:
    return float(_exchange_rates(as_values([threshold], field="threshold", low=0, high=1))[0])


def _exchange_rates(thresholds: Floats) -> Floats:
    """Odds of the thresholds; nan for 1."""
    return np.where(thresholds < 1, ratio(thresholds, 1 - thresholds), np.nan)
