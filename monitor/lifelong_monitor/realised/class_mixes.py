"""The recommended expected cost on labelled predictions at the stated, the estimated and the realised prevalences.

The value at the stated prevalences does not change when the prevalence shifts, so it hides what the shift costs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lifelong_core.deploy import PostProcessingHead, PrevalenceEstimate
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.design.recommendation.document import RecommendedMetric, label_metrics
from lifelong_core.entities.performance import ClassMix, MetricAtClassMix
from lifelong_core.store import AttachedRecommendation, LabelledPredictions
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_core.values.scientific import t_quantile
from lifelong_monitor.realised.metric_inputs import ENOUGH_SAMPLES, MetricInputs, ResampledPredictions
from lifelong_monitor.realised.recommended_metrics import (
    LEVEL,
    MOST_CLASSES,
    check_acceptance,
    compute_values,
    with_prevalences,
)
from lifelong_monitor.realised.records import RealisedMetric


def compute_class_mixes(
    attached: AttachedRecommendation,
    labelled: LabelledPredictions,
    estimate: PrevalenceEstimate | None,
    class_names: Sequence[str],
) -> tuple[MetricAtClassMix, ...]:
    """Compute each recommended expected cost with stated prevalences at all class mixes.

    The expected cost of a class mix is the sum of the mean costs per true class of the labelled predictions, each
    weighed by the prevalence of its class (thesis Prop. 2.25). Thresholds are judged at a stated or estimated class mix
    where each class of the mix has ENOUGH_SAMPLES labels.

    Args:
        attached: the recommendation of the task.
        labelled: predictions with their true classes.
        estimate: prevalence of the newest cycle; None: there is none.
        class_names: of the task, in order.

    Returns:
        In the order of the recommendation; empty without a label or such a metric.

    Raises:
        UnavailableError: the recommendation cannot be read.
    """
    metrics = [
        (label, metric)
        for label, metric in label_metrics(attached.recommendation)
        if metric.metric == "EC" and metric.parameters.get("prevalence") is not None
    ]
    if not metrics or not labelled.ids or len(class_names) > MOST_CLASSES:
        return ()
    inputs = MetricInputs.load(labelled, _no_head, classes=len(class_names), needs_probabilities=False)
    mixes = [(label, metric, *one) for label, metric in metrics for one in _mixes(metric, inputs, estimate)]
    values: list[MetricAtClassMix] = []
    for label, metric, mix, prevalences in mixes:
        value = _compute(label, metric, mix, prevalences, inputs.counted, attached, estimate)
        if value is not None:
            shares = dict(zip(class_names, prevalences.tolist(), strict=True))
            metric_value = EstimatedMetric(value.estimate, value.low, value.high)
            samples = inputs.counted.samples.size
            values.append(
                MetricAtClassMix(label, mix, shares, samples, metric_value, value.threshold, value.accepted)
            )
    return tuple(values)


def _no_head(version: int) -> PostProcessingHead:
    raise NotFoundError(f"head {version} is not needed.")


def _mixes(
    metric: RecommendedMetric, inputs: MetricInputs, estimate: PrevalenceEstimate | None
) -> Iterator[tuple[ClassMix, Floats]]:
    yield "stated", np.array(metric.parameters["prevalence"], dtype=np.float64)
    if estimate is not None:
        yield "estimated", estimate.prevalence
    samples = inputs.counted.samples
    yield "realised", np.bincount(samples.labels, minlength=samples.classes) / samples.size


def _compute(
    label: str,
    metric: RecommendedMetric,
    mix: ClassMix,
    prevalences: Floats,
    predictions: ResampledPredictions,
    attached: AttachedRecommendation,
    estimate: PrevalenceEstimate | None,
) -> RealisedMetric | None:
    """The value at one class mix; None where it cannot be computed."""
    weighed = with_prevalences(metric, None if mix == "realised" else prevalences)
    try:
        (value,) = compute_values(label, weighed, predictions, attached)
    except InvalidInputError:
        return None
    if mix == "realised":
        return value
    if mix == "estimated" and estimate is not None:
        value = _widen(value, metric, predictions, estimate)
    if (predictions.counts[prevalences > 0] < ENOUGH_SAMPLES).any() or value.threshold is None:
        return replace(value, accepted=None)
    return replace(value, accepted=check_acceptance(value, value.threshold, -1))


def _widen(
    value: RealisedMetric,
    metric: RecommendedMetric,
    predictions: ResampledPredictions,
    estimate: PrevalenceEstimate,
) -> RealisedMetric:
    """Add the uncertainty of the estimated prevalence to the interval; both parts are independent."""
    costs, samples = np.array(metric.parameters["costs"], dtype=np.float64), predictions.samples
    labels, decisions = samples.labels[samples.is_valid], samples.decisions[samples.is_valid]
    sums = np.bincount(labels, weights=costs[labels, decisions], minlength=samples.classes)
    rates = sums / np.maximum(np.bincount(labels, minlength=samples.classes), 1)
    if (estimate.degrees_of_freedom <= 0).any():
        return replace(value, low=float(rates.min()), high=float(rates.max()))
    spread = np.sqrt(max(rates @ estimate.covariance @ rates, 0.0))
    half = float(t_quantile(estimate.degrees_of_freedom.min(), (1 + LEVEL) / 2)) * spread
    low = value.estimate - np.hypot(value.estimate - value.low, half)
    high = value.estimate + np.hypot(value.high - value.estimate, half)
    return replace(value, low=max(float(low), float(costs.min())), high=min(float(high), float(costs.max())))
