"""Metric@(target metric = value): a cut-off that reaches a target, and a metric at this cut-off, on other cases."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers, Mask, as_labels
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics.counting.one_versus_rest import (
    fall_out,
    false_discovery_rate,
    false_omission_rate,
    miss_rate,
    negative_likelihood_ratio,
    negative_predictive_value,
    precision,
    sensitivity,
    specificity,
    youden_index,
)
from lifelong_core.metrics.scores.labelled_probabilities import as_class, as_labelled_probabilities
from lifelong_core.metrics.scores.ranking import Ranking, class_rankings, rank

PerClassMetric: TypeAlias = Callable[[Floats], Floats]
"""from confusion matrices (..., 2, 2) to values (..., 2), such as `sensitivity` or `partial(f_beta, beta=2)`; more true
positives, or fewer false ones, never make it worse"""

MOST_CLASSES = 1_000_000
"""limit of class indices, where the scores of one class do not show the number of classes"""

LOW_IS_GOOD: frozenset[PerClassMetric] = frozenset(
    {miss_rate, fall_out, false_discovery_rate, false_omission_rate, negative_likelihood_ratio}
)
COMPLEMENTS: tuple[frozenset[PerClassMetric], ...] = (
    frozenset({sensitivity, miss_rate}),
    frozenset({specificity, fall_out}),
    frozenset({precision, false_discovery_rate}),
    frozenset({negative_predictive_value, false_omission_rate}),
)


def choose_threshold(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    positive: int,
    metric: PerClassMetric,
    target: float,
    best: PerClassMetric | None = None,
) -> float:
    """Choose the cut-off at which a metric of one class against the rest reaches a target (thesis section 4.1.3,
    DG3.1).

    Use cases that are not those on which the model is then validated. A case is positive where its score is
    at least the cut-off, which is one of the scores, or inf. "Reaches" is at most the target for
    error rates and LR-, and at least the target for all others.

    Args:
        labels: shape (N,), true classes.
        scores: shape (N,), finite, higher for the positive class, such as its probability.
        positive: index of the class.
        metric: metric that must reach the target, e.g. `sensitivity`.
        target: its value.
        best: of all cut-offs that reach the target, choose one at which this metric is best; None: one that
            just reaches it. Among equals, the highest Youden index and then the highest cut-off are chosen.

    Returns:
        The cut-off; nan if none reaches the target.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.2]
        >>> choose_threshold([1, 0, 1, 1, 0, 0], scores, positive=1, metric=sensitivity, target=0.6)
        0.7
    """
    return cut_off(_ranking(labels, scores, positive), metric=metric, target=target, best=best)


def value_at_threshold(
    labels: ArrayLike, scores: ArrayLike, *, positive: int, threshold: float, metric: PerClassMetric
) -> float:
    """A metric of one class against the rest at a given cut-off.

    Args:
        labels: shape (N,), true classes.
        scores: shape (N,), finite, higher for the positive class, such as its probability.
        positive: index of the class.
        threshold: a case is positive where its score is at least this.
        metric: e.g. `specificity`.

    Returns:
        The value; nan where the metric is undefined, or the threshold is nan.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.2]
        >>> value_at_threshold([1, 0, 0, 0, 1, 0], scores, positive=1, threshold=0.8, metric=precision)
        0.5
    """
    return value_at(_ranking(labels, scores, positive), threshold=threshold, metric=metric)


def metric_at_target(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    metric: PerClassMetric = specificity,
    target_metric: PerClassMetric = sensitivity,
    target: float,
    split: tuple[ArrayLike, ArrayLike] | None = None,
) -> Floats:
    """Metric@(target metric = target) of each class against the rest (thesis section 4.1.3, DG3.1).

    On the split, of all cut-offs of the class's probability that reach the target, one at which the metric
    is best is chosen (if the two metrics are equivalent: one that just reaches the target); the value is that on
    the given cases.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        metric: reported metric, e.g. `specificity`.
        target_metric: metric that must reach the target, e.g. `sensitivity`.
        target: its value.
        split: labels and probabilities of other cases, to choose the cut-offs on; None: the same cases, which
            is optimistic.

    Returns:
        Shape (C,); nan where no cut-off reaches the target on the split, or the metric is undefined.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> probabilities = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.45, 0.55], [0.8, 0.2]]
        >>> metric_at_target([1, 0, 1, 1, 0, 0], probabilities, target=0.8).round(3).tolist()
        [0.333, 0.667]
    """
    rankings = class_rankings(*as_labelled_probabilities(labels, probabilities))
    chosen_on = rankings if split is None else class_rankings(*as_labelled_probabilities(*split))
    if len(chosen_on) != len(rankings):
        raise InvalidInputError(
            f"expected {len(rankings)} classes as in the given cases, got {len(chosen_on)}.", field="split"
        )
    return np.array(
        [
            at_target(ranking, of_split, metric=metric, target_metric=target_metric, target=target)
            for ranking, of_split in zip(rankings, chosen_on, strict=True)
        ]
    )


def at_target(
    ranking: Ranking, split: Ranking, *, metric: PerClassMetric, target_metric: PerClassMetric, target: float
) -> float:
    """`metric_at_target` of one class, from its rankings."""
    threshold = target_cut_off(split, metric=metric, target_metric=target_metric, target=target)
    return value_at(ranking, threshold=threshold, metric=metric)


def target_cut_off(
    split: Ranking, *, metric: PerClassMetric, target_metric: PerClassMetric, target: float
) -> float:
    """Cut-off for `metric_at_target` of one class; nan if none reaches the target."""
    says_the_same = metric is target_metric or any({metric, target_metric} <= pair for pair in COMPLEMENTS)
    return cut_off(split, metric=target_metric, target=target, best=None if says_the_same else metric)


def cut_off(
    ranking: Ranking, *, metric: PerClassMetric, target: float, best: PerClassMetric | None = None
) -> float:
    """`choose_threshold` of the cases of a ranking.

    Raises:
        InvalidInputError: the target is nan.
    """
    if np.isnan(target):
        raise InvalidInputError("expected a number, got nan.", field="target")
    true_positives = np.append(0, ranking.true_positives)
    false_positives = np.append(0, ranking.false_positives)
    thresholds = np.append(np.inf, ranking.thresholds)
    used = np.flatnonzero(_corners(true_positives, false_positives)) if best else np.arange(thresholds.size)
    confusions = _confusions(true_positives[used], false_positives[used], ranking)
    reached = _goodness(metric, confusions)
    left = np.flatnonzero(reached >= (-target if metric in LOW_IS_GOOD else target))
    if left.size == 0:
        return float("nan")
    left = left[_is_best(-reached[left] if best is None else _goodness(best, confusions[left]))]
    left = left[_is_best(_goodness(youden_index, confusions[left]))]
    return float(thresholds[used[left[0]]])


def value_at(ranking: Ranking, *, threshold: float, metric: PerClassMetric) -> float:
    """`value_at_threshold` of the cases of a ranking."""
    if np.isnan(threshold):
        return float("nan")
    above = np.searchsorted(-ranking.thresholds, -threshold, side="right")
    true_positives = np.append(0, ranking.true_positives)[above]
    false_positives = np.append(0, ranking.false_positives)[above]
    return float(metric(_confusions(true_positives, false_positives, ranking))[0])


def _corners(true_positives: Integers, false_positives: Integers) -> Mask:
    """Cut-offs that no other dominates (more true positives and no more false ones, or fewer false and no fewer true).

    The first two are always included: without any decision for the class, some metrics are undefined.
    """
    is_corner = np.ones(true_positives.size, dtype=np.bool_)
    is_corner[:-1] &= false_positives[1:] > false_positives[:-1]
    is_corner[1:] &= true_positives[1:] > true_positives[:-1]
    is_corner[:2] = True
    return is_corner


def _confusions(true_positives: Integers, false_positives: Integers, ranking: Ranking) -> Floats:
    """Confusion matrices, shape (..., 2, 2), the positive class first."""
    of_positives = [true_positives, ranking.positives - true_positives]
    of_negatives = [false_positives, ranking.negatives - false_positives]
    # In memory each entry lies together: sums over so short rows would else take five times as long.
    return np.moveaxis(np.array([of_positives, of_negatives], dtype=np.float64), (0, 1), (-2, -1))


def _goodness(metric: PerClassMetric, confusions: Floats) -> Floats:
    values = metric(confusions)[..., 0]
    return -values if metric in LOW_IS_GOOD else values


def _is_best(values: Floats) -> Mask:
    comparable = np.where(np.isnan(values), -np.inf, values)
    return comparable == comparable.max()


def _ranking(labels: ArrayLike, scores: ArrayLike, positive: int) -> Ranking:
    reference = as_labels(labels, classes=MOST_CLASSES)
    column = as_class(positive, classes=MOST_CLASSES)
    values = np.asarray(scores)
    if values.shape != reference.shape or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InvalidInputError(
            f"expected a finite number per label, shape {reference.shape}, got shape {values.shape}.",
            field="scores",
            hint="Give the scores of the positive class alone.",
        )
    return rank(values.astype(np.float64), reference == column)
