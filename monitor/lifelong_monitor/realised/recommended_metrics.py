"""The recommended metrics of a task, computed from its labelled predictions as a validation computes them."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lifelong_core.design.recommendation.document import RecommendedMetric, label_metrics
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.values.evaluation import Recipe, class_weights_of
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.design.validation.values.metric_values import evaluate_metric
from lifelong_core.metrics import METRICS
from lifelong_core.store import AttachedRecommendation, LabelledPredictions
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_monitor.realised.answered_predictions import HeadOf
from lifelong_monitor.realised.metric_inputs import SCORED, SEED, MetricInputs, ResampledPredictions
from lifelong_monitor.realised.records import LeftOutMetric, RealisedMetric, RecommendedMetrics

MOST_SERIES = 90
"""Largest number of series of one gauge for one population; Prometheus advises against more than a hundred."""
MOST_CLASSES = 100
"""Largest number of classes; with more, resampling takes memory and time that the cycles need."""
MOST_KDE_CLASSES = 10
"""ECE_KDE takes 140 MB with so many, and 1.3 GB with a hundred."""
LEVEL = 0.95
"""Confidence of the intervals."""

_VALIDATE = "validate the model on labelled cases instead"
_CUT = f"its cut-off must be chosen on other labelled cases than those that judge it: {_VALIDATE}"
_SLOW = f"resampling it takes time that the cycles need: {_VALIDATE}"
_KERNEL = f"with more than {MOST_KDE_CLASSES} classes it takes memory that the cycles need: {_VALIDATE}"
_TOO_LARGE = f"with more than {MOST_CLASSES} classes it takes time that the cycles need: {_VALIDATE}"
_UNKNOWN = "no labelled prediction is left whose probabilities are known"
_TOO_MANY = (
    f"some of its classes; with them there would be more than {MOST_SERIES} series, and summary values and values"
    " with a threshold come first"
)


def compute_recommended_metrics(
    attached: AttachedRecommendation,
    labelled: LabelledPredictions,
    head_of: HeadOf,
    *,
    classes: int,
    only_with_threshold: bool = False,
) -> RecommendedMetrics:
    """Compute the recommended metrics, each with its interval and whether it meets its thresholds.

    The class mix is that of the labels, also for metrics with stated prevalences; `class_mixes` compares them.

    Args:
        attached: the recommendation of the task.
        labelled: at least one prediction with its true class, oldest first.
        head_of: gives the heads that answered.
        classes: number of classes C of the task.
        only_with_threshold: leave out all metrics without an acceptance threshold.

    Returns:
        The values, those with a threshold first; and the metrics that are left out or undefined, with the reason.

    Raises:
        UnavailableError: the recommendation cannot be read.
    """
    wanted = {threshold.metric for threshold in attached.thresholds}
    metrics = sorted(label_metrics(attached.recommendation), key=lambda pair: pair[0] not in wanted)
    if only_with_threshold:
        metrics = [pair for pair in metrics if pair[0] in wanted]
    if classes > MOST_CLASSES:
        return RecommendedMetrics(left_out=tuple(LeftOutMetric(label, _TOO_LARGE) for label, _ in metrics))
    needs_probabilities = any(_is_scored(metric) for _, metric in metrics)
    inputs = MetricInputs.load(labelled, head_of, classes=classes, needs_probabilities=needs_probabilities)
    values: dict[str, list[RealisedMetric]] = {}
    left_out: list[LeftOutMetric] = []
    for label, metric in metrics:
        computed = _compute_metric(label, metric, inputs, attached, classes=classes)
        if isinstance(computed, str):
            left_out.append(LeftOutMetric(label, computed))
            continue
        values[label] = computed
        if computed[0].reason is not None:
            left_out.append(LeftOutMetric(label, computed[0].reason))
    shown, cut = _limit_series(values)
    return RecommendedMetrics(shown, (*left_out, *cut), inputs.unscored)


def _is_scored(metric: RecommendedMetric) -> bool:
    """Whether a metric needs probabilities; one with a target is left out, so it needs none."""
    return metric.metric in SCORED and "target" not in metric.parameters


def _compute_metric(
    label: str,
    metric: RecommendedMetric,
    inputs: MetricInputs,
    attached: AttachedRecommendation,
    *,
    classes: int,
) -> list[RealisedMetric] | str:
    """Return the values of a metric, or why it is left out."""
    if "target" in metric.parameters:
        return _CUT
    if METRICS[metric.metric].family != "counting" and metric.metric not in SCORED:
        return _SLOW
    if metric.metric == "ECE_KDE" and classes > MOST_KDE_CLASSES:
        return _KERNEL
    predictions = inputs.for_metric(metric)
    if predictions is None:
        return _UNKNOWN
    try:
        return compute_values(label, with_prevalences(metric, None), predictions, attached)
    except InvalidInputError as error:
        return str(error)


def with_prevalences(metric: RecommendedMetric, prevalences: Floats | None) -> RecommendedMetric:
    """Return a metric for another class mix, shape (C,); None: for that of the labels."""
    parameters = {name: value for name, value in metric.parameters.items() if name != "prevalence"}
    if prevalences is not None:
        parameters["prevalence"] = tuple(prevalences.tolist())
    return metric.model_copy(update={"parameters": parameters})


def compute_values(
    label: str, metric: RecommendedMetric, predictions: ResampledPredictions, attached: AttachedRecommendation
) -> list[RealisedMetric]:
    """Return the summary value of a metric, then the values of its classes, as a validation does.

    Raises:
        InvalidInputError: the metric cannot be computed for these predictions.
    """
    weights = class_weights_of(metric, attached.recommendation.fingerprint)
    recipe = Recipe.of(label, metric, weights=weights, split=None, seed=SEED)
    evaluated = evaluate_metric(
        recipe, predictions.samples, predictions.resamples, level=LEVEL, subprocesses=()
    )
    thresholds = [threshold for threshold in attached.thresholds if threshold.metric == label]
    return [
        _compare(value, _select_thresholds(value, thresholds, metric), predictions)
        for value in evaluated.values
    ]


def _compare(
    value: MetricValue, thresholds: Sequence[float], predictions: ResampledPredictions
) -> RealisedMetric:
    sign = 1 if value.orientation == "up" else -1
    realised = RealisedMetric(
        value.label,
        value.class_index,
        value.number("estimate"),
        value.number("low"),
        value.number("high"),
        threshold=max(thresholds, key=lambda threshold: sign * threshold, default=None),
        reason=value.reason,
    )
    if realised.threshold is None or not predictions.is_enough(value):
        return realised
    return replace(realised, accepted=check_acceptance(realised, realised.threshold, sign))


def _select_thresholds(
    value: MetricValue, thresholds: Sequence[AcceptanceThreshold], metric: RecommendedMetric
) -> list[float]:
    """Return the numbers that a value has to reach; a threshold without a class is for the summary value."""
    return [
        threshold.value
        for threshold in thresholds
        if value.class_index
        == (metric.target_class if threshold.class_index is None else threshold.class_index)
    ]


def check_acceptance(metric: RealisedMetric, threshold: float, sign: int) -> bool | None:
    """Return True if the estimate reaches the threshold, False if its whole interval misses it, else None.

    `sign` is -1 where lower values are better.
    """
    if math.isnan(metric.estimate):
        return None
    if sign * metric.estimate >= sign * threshold:
        return True
    better_end = metric.high if sign > 0 else metric.low
    return False if sign * better_end < sign * threshold else None


def _limit_series(
    values: Mapping[str, Sequence[RealisedMetric]],
) -> tuple[tuple[RealisedMetric, ...], list[LeftOutMetric]]:
    """Return at most MOST_SERIES values, and the metrics that lost some.

    Summary values and values with a threshold come first, then classes while there is room.
    """
    first = {
        label: [value for value in own if value.threshold is not None or value is own[0]]
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
