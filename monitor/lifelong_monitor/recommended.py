"""The metrics that the recommendation of a task names, of the decisions as they were made.

Imported only where a task has a recommendation: the design loop takes a moment to load.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lifelong_core.arrays import Floats, Integers
from lifelong_core.design.recommendation import RecommendedMetric
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.evaluating import mean_over_classes
from lifelong_core.design.validation.metric_labels import labelled_metrics
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import METRICS, ConfusionBootstrap, Interval, bootstrap_confusions, counting_metric
from lifelong_core.store import AttachedRecommendation, LabelledPredictions
from lifelong_monitor.status import LeftOutMetric, RealisedMetric

MOST_SERIES = 90
"""Of one metric family of one population; beyond a hundred Prometheus suffers."""
MOST_CELLS = 10_000
"""Of the confusion matrix: with more, resampling takes memory and time that the cycles need."""
ENOUGH_SAMPLES = 30
"""With fewer, of a class that counts or of the rest, or for each class on average, no threshold is judged; those of one
group say little more than one."""

_CUT = "it cuts the probabilities anew, and the log holds the decisions as they were made"
_SCORED = "it judges probabilities, and those of the log are of several heads"
_TOO_LARGE = f"there are more than {MOST_CELLS} pairs of a class and a decision"
_TOO_MANY = f"more than {MOST_SERIES} series; only what has a threshold is shown of it"


@dataclass(frozen=True, eq=False)
class _Evidence:
    """The labelled predictions, as metrics that count see them."""

    resampled: ConfusionBootstrap
    counts: Integers
    """shape (C,), independent ones of each true class"""

    @property
    def classes(self) -> int:
        return self.counts.size

    def is_enough(self, metric: RecommendedMetric, class_index: int | None) -> bool:
        """Whether there are samples enough to judge a metric, of one class or of all."""
        total = self.counts.sum()
        if not metric.per_class:
            return bool(total >= ENOUGH_SAMPLES * self.classes)
        classes = range(self.classes) if class_index is None else (class_index,)
        return all(min(self.counts[k], total - self.counts[k]) >= ENOUGH_SAMPLES for k in classes)


def realised_metrics(
    attached: AttachedRecommendation, labelled: LabelledPredictions, *, classes: int, decisions: int
) -> tuple[tuple[RealisedMetric, ...], tuple[LeftOutMetric, ...]]:
    """The recommended metrics that count decisions, each with its interval and whether its thresholds are met.

    Args:
        attached: the recommendation of the task.
        labelled: at least one prediction with its true class.
        classes: number of classes C of the task.
        decisions: number of decisions D, C + 1 where abstaining is one.

    Returns:
        Those that could be computed, first those with a threshold; and the others, with the reason.

    Raises:
        UnavailableError: the recommendation cannot be read.
    """
    thresholds = attached.thresholds
    recommended = labelled_metrics(attached.recommendation)
    if classes * decisions > MOST_CELLS:
        return (), tuple(LeftOutMetric(label, _TOO_LARGE) for label, _ in recommended)
    evidence = _Evidence(
        bootstrap_confusions(
            labelled.labels,
            labelled.decisions,
            classes=classes,
            decisions_count=decisions,
            groups=labelled.groups,
        ),
        _independent(labelled, classes),
    )
    fingerprint = attached.recommendation.fingerprint
    weights = fingerprint.class_weights if fingerprint.unequal_interest else None
    values: list[RealisedMetric] = []
    left_out: list[LeftOutMetric] = []
    wanted = {threshold.metric for threshold in thresholds}
    for label, metric in sorted(recommended, key=lambda pair: pair[0] not in wanted):
        own = [threshold for threshold in thresholds if threshold.metric == label]
        reason = _why_not(metric)
        try:
            found = (
                []
                if reason
                else _values(label, metric, evidence, own, weights=metric.class_weights or weights)
            )
        except InvalidInputError as error:
            found, reason = [], str(error)
        if len(values) + len(found) > MOST_SERIES:
            found, reason = [value for value in found if value.has_threshold], _TOO_MANY
        values += found
        if reason:
            left_out.append(LeftOutMetric(label, reason))
    return tuple(values[:MOST_SERIES]), tuple(left_out)


def _independent(labelled: LabelledPredictions, classes: int) -> Integers:
    """How many predictions of each true class there are, those of one group counted once, shape (C,)."""
    labels = labelled.labels
    if labelled.groups is not None:
        group = np.unique(labelled.groups, return_inverse=True)[1]
        labels = np.unique(group * classes + labels) % classes
    return np.bincount(labels, minlength=classes)


def _why_not(metric: RecommendedMetric) -> str:
    """Why a metric cannot be computed from labels and decisions; empty: it can."""
    if METRICS[metric.metric].family != "counting":
        return _SCORED
    return _CUT if "target" in metric.parameters or metric.metric == "NB" else ""


def _values(
    label: str,
    metric: RecommendedMetric,
    evidence: _Evidence,
    thresholds: Sequence[AcceptanceThreshold],
    *,
    weights: tuple[float, ...] | None,
) -> list[RealisedMetric]:
    """What sums the metric up, then its classes, as a validation has it."""
    parameters: dict[str, Any] = dict(metric.parameters)
    function = counting_metric(metric.metric, **parameters)
    intervals: dict[int | None, Interval] = {}
    if metric.target_class is None:
        shares = None if weights is None else np.array(weights)

        def summary(confusions: Floats) -> Floats:
            values = function(confusions)
            return mean_over_classes(values, shares) if metric.per_class else values

        intervals[None] = evidence.resampled.of(summary).interval()
    if metric.per_class:
        intervals |= dict(enumerate(evidence.resampled.of(function).intervals()))
    if metric.target_class is not None:
        intervals = {metric.target_class: intervals[metric.target_class]}
    is_up = METRICS[metric.metric].orientation == "up"
    found: list[RealisedMetric] = []
    for class_index, interval in intervals.items():
        wanted = _for(class_index, thresholds, metric)
        accepted = (
            _accepted(interval, wanted, is_up=is_up) if evidence.is_enough(metric, class_index) else None
        )
        bounds = (interval.estimate, interval.low, interval.high)
        found.append(
            RealisedMetric(label, class_index, *bounds, has_threshold=bool(wanted), accepted=accepted)
        )
    return found


def _for(
    class_index: int | None, thresholds: Sequence[AcceptanceThreshold], metric: RecommendedMetric
) -> list[float]:
    """The values to reach of a class; without one, a threshold is for what sums the metric up."""
    return [
        threshold.value
        for threshold in thresholds
        if class_index == (metric.target_class if threshold.class_index is None else threshold.class_index)
    ]


def _accepted(interval: Interval, thresholds: Sequence[float], *, is_up: bool) -> bool | None:
    """True: the estimate reaches all; False: one is missed, and not by chance; None: else, or there is none."""
    if not thresholds or math.isnan(interval.estimate):
        return None
    sign = 1 if is_up else -1
    worst = max(sign * threshold for threshold in thresholds)
    if sign * interval.estimate >= worst:
        return True
    better_end = interval.high if is_up else interval.low
    return False if sign * better_end < worst else None
