"""The metrics that the recommendation of a task names, of the answers as they were given.

They are computed as a validation computes them. Imported only where a task has a recommendation: the design loop takes
a moment to load.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from lifelong_core.arrays import Floats, Integers
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.recommendation.labels import label_metrics
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.outputs import ModelOutputs, Samples
from lifelong_core.design.validation.values.evaluation import Recipe, class_weights_of
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.design.validation.values.metric_values import evaluate_metric
from lifelong_core.design.validation.values.resampled_metrics import KERNELS
from lifelong_core.design.validation.values.resamples import Resamples
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import METRICS
from lifelong_core.store import AttachedRecommendation, LabelledPredictions
from lifelong_monitor.exporter.status import (
    LeftOutMetric,
    LeftOutPredictions,
    RealisedMetric,
    RecommendedMetrics,
)
from lifelong_monitor.realised.answered_predictions import HeadOf, compute_answers

MOST_SERIES = 90
"""Of one metric family of one population; beyond a hundred Prometheus suffers."""
MOST_CLASSES = 100
"""With more, resampling takes memory and time that the cycles need."""
MOST_SAMPLES = 100_000
MOST_PROBABILITIES = 500_000
"""Samples times classes, for metrics of probabilities: a second of one core for the slowest"""
MOST_KERNEL_SAMPLES = 1_000
"""Kernels look at all pairs."""
MOST_KDE_CLASSES = 10
"""ECE_KDE takes 140 MB with so many, and 1.3 GB with a hundred."""
ENOUGH_SAMPLES = 30
"""With fewer, of a class that counts or of the rest, or for each class on average, no threshold is judged; those of one
group say little more than one."""

REPLICATES = 1000
MOST_FOR_ALL_REPLICATES = 50_000
"""Samples times classes, up to which there is time for so many, for metrics that count decisions"""
FEWER_REPLICATES = 200
LEVEL = 0.95
SEED = 0

SCORED = frozenset({*KERNELS, "NB", "AUROC", "AP", "BS", "RBS", "BSS", "NLL", "ECE", "CWCE"})
"""Metrics of probabilities that can be resampled fast"""

_VALIDATE = "validate the model on labelled cases instead"
_CUT = f"its cut-off has to be chosen on other labelled cases than it is judged on: {_VALIDATE}"
_SLOW = f"resampling it takes time that the cycles need: {_VALIDATE}"
_KERNEL = f"with more than {MOST_KDE_CLASSES} classes it takes memory that the cycles need: {_VALIDATE}"
_TOO_LARGE = f"with more than {MOST_CLASSES} classes it takes time that the cycles need: {_VALIDATE}"
_UNKNOWN = "no labelled prediction is left whose probabilities are known"
_TOO_MANY = (
    f"some of its classes; with them there would be more than {MOST_SERIES} series, and what sums a metric up or has a"
    " threshold comes first"
)


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Labelled predictions, and how they could have come out otherwise."""

    samples: Samples
    resamples: Resamples
    counts: Integers
    """shape (C,), independent ones of each true class"""

    @classmethod
    def of(
        cls,
        labelled: LabelledPredictions,
        rows: Integers,
        *,
        classes: int,
        probabilities: Floats | None = None,
    ) -> Self:
        """Of some rows, whose probabilities these are."""
        samples = Samples.of(
            labelled.labels[rows],
            ModelOutputs(probabilities=probabilities, decisions=labelled.decisions[rows]),
            classes=classes,
            groups=None if labelled.groups is None else labelled.groups[rows],
        )
        is_fast = probabilities is None and samples.size * classes <= MOST_FOR_ALL_REPLICATES
        replicates = REPLICATES if is_fast else FEWER_REPLICATES
        independent = np.unique(samples.unit * classes + samples.labels) % classes
        return cls(
            samples,
            Resamples.draw(samples.unit, replicates=replicates, seed=SEED),
            np.bincount(independent, minlength=classes),
        )

    def is_enough(self, value: MetricValue) -> bool:
        """Whether there are samples enough to judge a value."""
        total = self.counts.sum()
        if not METRICS[value.metric].is_per_class:
            return bool(total >= ENOUGH_SAMPLES * self.counts.size)
        counts = self.counts if value.class_index is None else self.counts[[value.class_index]]
        return bool(np.minimum(counts, total - counts).min() >= ENOUGH_SAMPLES)


@dataclass(frozen=True, eq=False)
class _Gathered:
    """What there is to compute metrics from."""

    counted: _Evidence
    """labels and decisions"""
    scored: _Evidence | None
    """with probabilities; None: nobody asks for them, or there are none"""
    paired: _Evidence | None
    """for kernels"""
    unscored: tuple[LeftOutPredictions, ...] = ()

    @classmethod
    def of(
        cls, labelled: LabelledPredictions, head_of: HeadOf, *, classes: int, needs_probabilities: bool
    ) -> Self:
        counted = _Evidence.of(labelled, _newest(labelled, MOST_SAMPLES), classes=classes)
        if not needs_probabilities:
            return cls(counted, None, None)
        newest = _newest(labelled, min(MOST_SAMPLES, MOST_PROBABILITIES // classes))
        found = compute_answers(
            labelled.logits[newest], labelled.head_versions[newest], head_of, classes=classes
        )
        rows = newest[found.is_known]
        if rows.size == 0:
            return cls(counted, None, None, found.unscored)
        scored, paired = (
            _Evidence.of(labelled, rows[-most:], classes=classes, probabilities=found.probabilities[-most:])
            for most in (rows.size, MOST_KERNEL_SAMPLES)
        )
        return cls(counted, scored, paired, found.unscored)

    def for_metric(self, metric: RecommendedMetric) -> _Evidence | None:
        """What a metric is computed from."""
        if metric.metric in KERNELS:
            return self.paired
        return self.scored if metric.metric in SCORED else self.counted


def realised_metrics(
    attached: AttachedRecommendation, labelled: LabelledPredictions, head_of: HeadOf, *, classes: int
) -> RecommendedMetrics:
    """The recommended metrics, each with its interval and whether its thresholds are met.

    Args:
        attached: the recommendation of the task.
        labelled: at least one prediction with its true class, oldest first.
        head_of: gives the heads that answered.
        classes: number of classes C of the task.

    Returns:
        Those that could be computed, first those with a threshold; and why the others could not, or are undefined.

    Raises:
        UnavailableError: the recommendation cannot be read.
    """
    wanted = {threshold.metric for threshold in attached.thresholds}
    metrics = sorted(label_metrics(attached.recommendation), key=lambda pair: pair[0] not in wanted)
    if classes > MOST_CLASSES:
        return RecommendedMetrics(left_out=tuple(LeftOutMetric(label, _TOO_LARGE) for label, _ in metrics))
    needs_probabilities = any(_is_scored(metric) for _, metric in metrics)
    gathered = _Gathered.of(labelled, head_of, classes=classes, needs_probabilities=needs_probabilities)
    values: dict[str, list[RealisedMetric]] = {}
    left_out: list[LeftOutMetric] = []
    for label, metric in metrics:
        found = _computed(label, metric, gathered, attached, classes=classes)
        if isinstance(found, str):
            left_out.append(LeftOutMetric(label, found))
            continue
        values[label] = found
        if found[0].reason is not None:
            left_out.append(LeftOutMetric(label, found[0].reason))
    shown, cut = _within_limit(values)
    return RecommendedMetrics(shown, (*left_out, *cut), gathered.unscored)


def _newest(labelled: LabelledPredictions, most: int) -> Integers:
    """Rows of at most so many, shape (n,)."""
    size = labelled.labels.size
    return np.arange(max(0, size - most), size)


def _is_scored(metric: RecommendedMetric) -> bool:
    """Whether it judges probabilities; what is left out anyway does not need them."""
    return metric.metric in SCORED and "target" not in metric.parameters


def _computed(
    label: str,
    metric: RecommendedMetric,
    gathered: _Gathered,
    attached: AttachedRecommendation,
    *,
    classes: int,
) -> list[RealisedMetric] | str:
    """The values of a metric, or why it is left out."""
    if "target" in metric.parameters:
        return _CUT
    if METRICS[metric.metric].family != "counting" and metric.metric not in SCORED:
        return _SLOW
    if metric.metric == "ECE_KDE" and classes > MOST_KDE_CLASSES:
        return _KERNEL
    evidence = gathered.for_metric(metric)
    if evidence is None:
        return _UNKNOWN
    try:
        return _values(label, metric, evidence, attached)
    except InvalidInputError as error:
        return str(error)


def _values(
    label: str, metric: RecommendedMetric, evidence: _Evidence, attached: AttachedRecommendation
) -> list[RealisedMetric]:
    """What sums the metric up, then its classes, as a validation has it."""
    weights = class_weights_of(metric, attached.recommendation.fingerprint)
    recipe = Recipe.of(label, metric, weights=weights, split=None, seed=SEED)
    found = evaluate_metric(recipe, evidence.samples, evidence.resamples, level=LEVEL, subprocesses=())
    own = [threshold for threshold in attached.thresholds if threshold.metric == label]
    return [_judged(value, _for(value, own, metric), evidence) for value in found.values]


def _judged(value: MetricValue, thresholds: Sequence[float], evidence: _Evidence) -> RealisedMetric:
    realised = RealisedMetric(
        value.label,
        value.class_index,
        value.number("estimate"),
        value.number("low"),
        value.number("high"),
        has_threshold=bool(thresholds),
        reason=value.reason,
    )
    if not thresholds or not evidence.is_enough(value):
        return realised
    return replace(realised, accepted=_accepted(realised, thresholds, is_up=value.orientation == "up"))


def _for(
    value: MetricValue, thresholds: Sequence[AcceptanceThreshold], metric: RecommendedMetric
) -> list[float]:
    """The numbers that a value has to reach; without a class, a threshold is for what sums the metric up."""
    return [
        threshold.value
        for threshold in thresholds
        if value.class_index
        == (metric.target_class if threshold.class_index is None else threshold.class_index)
    ]


def _accepted(metric: RealisedMetric, thresholds: Sequence[float], *, is_up: bool) -> bool | None:
    """True: the estimate reaches all; False: one is missed, and not by chance; None: else."""
    if math.isnan(metric.estimate):
        return None
    sign = 1 if is_up else -1
    worst = max(sign * threshold for threshold in thresholds)
    if sign * metric.estimate >= worst:
        return True
    better_end = metric.high if is_up else metric.low
    return False if sign * better_end < worst else None


def _within_limit(
    values: Mapping[str, Sequence[RealisedMetric]],
) -> tuple[tuple[RealisedMetric, ...], list[LeftOutMetric]]:
    """As many series as Prometheus takes: of each metric what sums it up or has a threshold, and classes while there is
    room."""
    first = {
        label: [value for value in own if value.has_threshold or value is own[0]]
        for label, own in values.items()
    }
    room = MOST_SERIES - sum(map(len, first.values()))
    shown: list[RealisedMetric] = []
    for label, own in values.items():
        more = len(own) - len(first[label])
        shown += own if more <= room else first[label]
        room -= more if more <= room else 0
    shown = shown[:MOST_SERIES]
    sizes = Counter(value.label for value in shown)
    return tuple(shown), [
        LeftOutMetric(label, _TOO_MANY) for label in values if sizes[label] < len(values[label])
    ]
