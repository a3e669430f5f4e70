"""Metric@(target metric = value): a cut-off that reaches a target, and a metric at this cut-off, on other cases."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.one_versus_rest import (
    fall_out,
    false_discovery_rate,
    false_omission_rate,
    miss_rate,
    negative_likelihood_ratio,
    negative_predictive_value,
    positive_share,
    precision,
    sensitivity,
    specificity,
    youden_index,
)
from lifelong_core.metrics.scores.ranking import OperatingPoints, Ranking, class_rankings, rank
from lifelong_core.metrics.scores.samples import as_class, as_labelled_probabilities
from lifelong_core.values.arrays import Floats, Mask, as_labels, as_prevalence
from lifelong_core.values.errors import InvalidInputError

PerClassMetric: TypeAlias = Callable[[Floats], Floats]
"""from confusion matrices (..., 2, 2) to values (..., 2), such as `sensitivity` or `partial(f_beta, beta=2)`; more true
positives, or fewer false ones, never make it worse, but for the share of positives"""

MOST_CLASSES = 1_000_000
"""limit of class indices, where the scores of one class do not show the number of classes"""

SHARE_OF_POSITIVES = "PPR"
"""acronym of `positive_share`, which is a target and no metric of quality"""

LOW_IS_GOOD: frozenset[PerClassMetric] = frozenset(
    {
        miss_rate,
        fall_out,
        false_discovery_rate,
        false_omission_rate,
        negative_likelihood_ratio,
        positive_share,
    }
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
    prevalence: ArrayLike | None = None,
) -> float:
    """Choose the cut-off at which a metric of one class against the rest reaches a target (thesis section 4.1.3,
    DG3.1).

    Use cases that are not those on which the model is then validated. A case is positive where its score is
    at least the cut-off, which is one of the scores, or inf. "Reaches" is at most the target for
    error rates, LR- and the share of positives, and at least the target for all others.

    Args:
        labels: shape (N,), true classes.
        scores: shape (N,), finite, higher for the positive class, such as its probability.
        positive: index of the class.
        metric: metric that must reach the target, e.g. `sensitivity`.
        target: its value.
        best: of all cut-offs that reach the target, choose one at which this metric is best; None: one that
            just reaches it. Among equals, the highest Youden index and then the highest cut-off are chosen.
        prevalence: shape (C,), class shares at which the metrics are computed, with the rates of each class as in the
            given cases; None: those of these cases.

    Returns:
        The cut-off; nan if none reaches the target.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.2]
        >>> choose_threshold([1, 0, 1, 1, 0, 0], scores, positive=1, metric=sensitivity, target=0.6)
        0.7
    """
    points = _points(labels, scores, positive, prevalence)
    return cut_off(points, metric=metric, target=target, best=best)


def best_threshold(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    positive: int,
    metric: PerClassMetric,
    prevalence: ArrayLike | None = None,
) -> float:
    """Choose the cut-off at which a metric of one class against the rest is best (thesis section 4.1.3, FP2.6).

    Args:
        labels: shape (N,), true classes.
        scores: shape (N,), finite, higher for the positive class, such as its probability.
        positive: index of the class.
        metric: metric to optimise, e.g. `f_beta`, of confusion matrices (..., 2, 2) with the class first.
        prevalence: shape (C,), class shares at which the metric is computed; None: those of the given cases.

    Returns:
        The cut-off, as `choose_threshold` chooses among equals; nan if the metric is undefined at all of them.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.2]
        >>> best_threshold([1, 0, 1, 1, 0, 0], scores, positive=1, metric=youden_index)
        0.6
    """
    return _best(_points(labels, scores, positive, prevalence), metric)


def value_at_threshold(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    positive: int,
    threshold: float,
    metric: PerClassMetric,
    prevalence: ArrayLike | None = None,
) -> float:
    """A metric of one class against the rest at a given cut-off.

    Args:
        labels: shape (N,), true classes.
        scores: shape (N,), finite, higher for the positive class, such as its probability.
        positive: index of the class.
        threshold: a case is positive where its score is at least this.
        metric: e.g. `specificity`.
        prevalence: shape (C,), class shares at which the metric is computed; None: those of the given cases.

    Returns:
        The value; nan where the metric is undefined, or the threshold is nan.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.2]
        >>> value_at_threshold([1, 0, 0, 0, 1, 0], scores, positive=1, threshold=0.8, metric=precision)
        0.5
    """
    return value_at(_points(labels, scores, positive, prevalence), threshold=threshold, metric=metric)


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
    points = OperatingPoints.of(split)
    threshold = target_cut_off(points, metric=metric, target_metric=target_metric, target=target)
    return value_at(OperatingPoints.of(ranking), threshold=threshold, metric=metric)


def target_cut_off(
    split: OperatingPoints, *, metric: PerClassMetric, target_metric: PerClassMetric, target: float
) -> float:
    """Cut-off for `metric_at_target` of one class; nan if none reaches the target."""
    says_the_same = metric is target_metric or any({metric, target_metric} <= pair for pair in COMPLEMENTS)
    return cut_off(split, metric=target_metric, target=target, best=None if says_the_same else metric)


def cut_off(
    points: OperatingPoints, *, metric: PerClassMetric, target: float, best: PerClassMetric | None = None
) -> float:
    """`choose_threshold` at given operating points.

    Raises:
        InvalidInputError: the target is nan.
    """
    if np.isnan(target):
        raise InvalidInputError("expected a number, got nan.", field="target")
    # More true positives raise the share of positives too, so that a dominated cut-off may be the best that is allowed.
    by_corners = best is not None and metric is not positive_share
    used = np.flatnonzero(_corners(points)) if by_corners else np.arange(points.thresholds.size)
    confusions = points.confusions(used)
    reached = _goodness(metric, confusions)
    left = np.flatnonzero(reached >= (-target if metric in LOW_IS_GOOD else target) - points.slack)
    if left.size == 0:
        return float("nan")
    left = left[_is_best(-reached[left] if best is None else _goodness(best, confusions[left]))]
    left = left[_is_best(_goodness(youden_index, confusions[left]))]
    return float(points.thresholds[used[left[0]]])


def _best(points: OperatingPoints, metric: PerClassMetric) -> float:
    confusions = points.confusions()
    values = _goodness(metric, confusions)
    if np.isnan(values).all():
        return float("nan")
    left = np.flatnonzero(_is_best(values))
    left = left[_is_best(_goodness(youden_index, confusions[left]))]
    return float(points.thresholds[left[0]])


def value_at(points: OperatingPoints, *, threshold: float, metric: PerClassMetric) -> float:
    """`value_at_threshold` at given operating points."""
    if np.isnan(threshold):
        return float("nan")
    # A threshold of inf is that of the first point, which is always there.
    above = np.searchsorted(-points.thresholds, -threshold, side="right") - 1
    return float(metric(points.confusions(np.array([above])))[0, 0])


def _corners(points: OperatingPoints) -> Mask:
    """Cut-offs that no other dominates (more true positives and no more false ones, or fewer false and no fewer true).

    The first two are always included: without any decision for the class, some metrics are undefined.
    """
    true_positives, false_positives = points.true_positives, points.false_positives
    is_corner = np.ones(true_positives.size, dtype=np.bool_)
    is_corner[:-1] &= false_positives[1:] > false_positives[:-1]
    is_corner[1:] &= true_positives[1:] > true_positives[:-1]
    is_corner[:2] = True
    return is_corner


def _goodness(metric: PerClassMetric, confusions: Floats) -> Floats:
    values = metric(confusions)[..., 0]
    return -values if metric in LOW_IS_GOOD else values


def _is_best(values: Floats) -> Mask:
    comparable = np.where(np.isnan(values), -np.inf, values)
    return comparable == comparable.max()


def _points(
    labels: ArrayLike, scores: ArrayLike, positive: int, prevalence: ArrayLike | None
) -> OperatingPoints:
    reference = as_labels(labels, classes=MOST_CLASSES)
    column = as_class(positive, classes=MOST_CLASSES)
    values = np.asarray(scores)
    if values.shape != reference.shape or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InvalidInputError(
            f"expected a finite number per label, shape {reference.shape}, got shape {values.shape}.",
            field="scores",
            hint="Give the scores of the positive class alone.",
        )
    numbers = values.astype(np.float64)
    if prevalence is None:
        return OperatingPoints.of(rank(numbers, reference == column))
    return OperatingPoints.in_population(numbers, reference, column, as_prevalence(prevalence))
