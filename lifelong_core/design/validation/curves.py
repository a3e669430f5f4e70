"""Confusion matrix, curves and reliability diagrams of a validation."""

import math

import numpy as np

from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.validation.result import (
    ConfusionTable,
    DecisionCurvePoints,
    PrecisionRecallPoints,
    ReliabilityBins,
    RocPoints,
)
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import decision_curve, precision_recall_curve, reliability_diagram, roc_curve
from lifelong_core.metrics.counting.confusion import confusion_matrix, ratio
from lifelong_core.values.arrays import Floats, Integers

MOST_POINTS = 500
"""Most points of a curve"""
FEWEST_POINTS = 50
ALL_POINTS = 10_000
"""Approximate limit over all classes, so that a result of many classes stays small"""


def confusion_table(samples: Samples) -> ConfusionTable:
    """The counts of each true class by decision."""
    valid = samples.part(samples.is_valid)
    columns = samples.classes + samples.can_abstain
    counts = confusion_matrix(valid.labels, valid.decisions, classes=samples.classes, decisions_count=columns)
    shares = ratio(counts.astype(np.float64), counts.sum(axis=1, keepdims=True))
    invalid = np.bincount(samples.labels[~samples.is_valid], minlength=samples.classes)
    return ConfusionTable(
        counts=tuple(map(tuple, counts.tolist())),
        shares=tuple(numbers(row) for row in shares),
        invalid=tuple(invalid.tolist()),
    )


def roc_points(valid: Samples) -> tuple[RocPoints, ...]:
    """ROC curves of the classes that occur, if another class occurs too."""
    curves: list[RocPoints] = []
    for k, size in enumerate(np.bincount(valid.labels, minlength=valid.classes)):
        if 0 < size < valid.size:
            curve = roc_curve(valid.labels, valid.scores, positive=k)
            kept = thin_points(curve.false_positive_rate, curve.true_positive_rate, points=_points(valid))
            curves.append(
                RocPoints(
                    class_index=k,
                    thresholds=numbers(curve.thresholds[kept]),
                    false_positive_rate=tuple(curve.false_positive_rate[kept].tolist()),
                    true_positive_rate=tuple(curve.true_positive_rate[kept].tolist()),
                    area=curve.area,
                )
            )
    return tuple(curves)


def precision_recall_points(valid: Samples) -> tuple[PrecisionRecallPoints, ...]:
    """Precision-recall curves of the classes that occur."""
    curves: list[PrecisionRecallPoints] = []
    for k, size in enumerate(np.bincount(valid.labels, minlength=valid.classes)):
        if size > 0:
            curve = precision_recall_curve(valid.labels, valid.scores, positive=k)
            kept = thin_points(curve.recall, curve.precision, points=_points(valid))
            curves.append(
                PrecisionRecallPoints(
                    class_index=k,
                    thresholds=tuple(curve.thresholds[kept].tolist()),
                    recall=tuple(curve.recall[kept].tolist()),
                    precision=tuple(curve.precision[kept].tolist()),
                    average_precision=curve.average_precision,
                    prevalence=float(size / valid.size),
                )
            )
    return tuple(curves)


def reliability_bins(valid: Samples) -> tuple[ReliabilityBins, ...]:
    """Reliability bins of the likeliest class, and of each class."""
    diagrams: list[ReliabilityBins] = []
    for k in (None, *range(valid.classes)):
        diagram = reliability_diagram(valid.labels, valid.scores, positive=k)
        diagrams.append(
            ReliabilityBins(
                class_index=k,
                edges=() if diagram.edges is None else tuple(diagram.edges.tolist()),
                counts=tuple(diagram.counts.tolist()),
                confidence=numbers(diagram.confidence),
                frequency=numbers(diagram.frequency),
            )
        )
    return tuple(diagrams)


def decision_curve_points(
    valid: Samples, recommendation: Recommendation, mix: ClassMix | None = None
) -> tuple[DecisionCurvePoints, ...]:
    """Decision curves of the target class, else of each class; none without net benefit and risk threshold.

    Where the class mix of the data is not that of use, they are those of the class mix of use, with corrected
    probabilities; there are none if it is not known, or a class of it has no sample.
    """
    fingerprint = recommendation.fingerprint
    wanted = any(metric.metric == "NB" for metric in recommendation.metrics)
    if not wanted and fingerprint.risk_threshold is None:
        return ()
    if mix is not None and (mix.in_use is None or mix.missing_class(valid.labels) is not None):
        return ()
    scores = valid.scores if mix is None else mix.corrected(valid.scores)
    if np.isnan(scores).any():
        return ()
    target = fingerprint.target_class
    in_use = None if mix is None else mix.in_use
    curves: list[DecisionCurvePoints] = []
    for k in range(valid.classes) if target is None else [target]:
        curve = decision_curve(valid.labels, scores, positive=k, prevalence=in_use)
        curves.append(
            DecisionCurvePoints(
                class_index=k,
                thresholds=tuple(curve.thresholds.tolist()),
                net_benefit=tuple(curve.net_benefit.tolist()),
                treat_all=tuple(curve.treat_all.tolist()),
                prevalence=None if in_use is None else float(in_use[k]),
            )
        )
    return tuple(curves)


def thin_points(x: Floats, y: Floats, *, points: int) -> Integers:
    """At most `most` points of a curve: the first, the last and evenly spaced ones between them.

    Examples:
        >>> thin_points(np.linspace(0, 1, 5), np.zeros(5), points=3).tolist()
        [0, 2, 4]
    """
    if x.size <= points:
        return np.arange(x.size)
    length: Floats = np.cumsum(np.abs(np.diff(x, prepend=x[0])) + np.abs(np.diff(y, prepend=y[0])))
    places: Integers = np.searchsorted(length, np.linspace(0, float(length[-1]), points)[:-1])
    return np.unique(np.append(places, x.size - 1))


def numbers(values: Floats) -> tuple[Number, ...]:
    """Numbers with None for non-finite ones."""
    return tuple(value if math.isfinite(value) else None for value in values.tolist())


def _points(valid: Samples) -> int:
    return max(FEWEST_POINTS, min(MOST_POINTS, ALL_POINTS // valid.classes))
