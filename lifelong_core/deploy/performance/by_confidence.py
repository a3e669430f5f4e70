"""Estimates of performance by the confidence methods, with intervals by a jackknife of the calibration set."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits, crossfitting_folds
from lifelong_core.deploy.performance.by_prevalence import MetricsWithEffects
from lifelong_core.deploy.performance.confidence.base import ConfidenceMethod
from lifelong_core.deploy.performance.derived_metrics import (
    AUROC,
    metric_gradients,
    metric_intervals,
)
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.deploy.performance.posteriors import JudgedWindow, WindowPosteriors
from lifelong_core.deploy.performance.ranking import posterior_areas
from lifelong_core.deploy.quantification.uncertainty import Clusters, Influence, combine
from lifelong_core.values.arrays import Floats, Logits

FOLDS = 20
_MOST_ROWS = 4096
"""Rows of the window, evenly spread, on which the jackknife computes."""


@dataclass(frozen=True, eq=False)
class ConfidenceEstimate:
    """Estimate of one head's performance in one window by a confidence method."""

    confusion: Floats
    """shape (C, D), shares"""
    intervals: dict[str, EstimatedMetric]
    effective_samples: float
    fallback_classes: tuple[int, ...]


def estimate_by_confidence(
    method: type[ConfidenceMethod],
    calibration: LabeledLogits,
    head: PostProcessingHead,
    window: tuple[Logits, Floats, Clusters | None],
    acronyms: Sequence[str],
    confidence: float,
) -> ConfidenceEstimate:
    """Estimate metrics by one confidence method.

    Args:
        method: one of CONFIDENCE_METHODS.
        calibration: labelled logits.
        head: whose decisions are judged.
        window: distinct rows, (U, C), their numbers of samples, (U,), and the groups of the samples.
        acronyms: of METRICS that count decisions, and AUROC.
        confidence: nominal coverage of each interval.
    """
    logits, counts, clusters = window
    judged = JudgedWindow.of_rows(logits, counts, head)
    fitted = method.fit(calibration)
    found = _find(fitted, logits, judged, head, acronyms)
    unmoved = np.zeros((calibration.samples, found.metrics.values.size))
    spread = combine(Influence(found.effects.window, unmoved, unmoved), calibration, counts, clusters)
    # Of the error from the population's value, and from what the true classes of this window will give.
    sampling = np.maximum(np.diag(spread.covariance), found.truth.variances / spread.effective_n)
    variances = sampling + _jackknife(method, calibration, head, window, acronyms)
    intervals = metric_intervals(
        found.metrics, variances, degrees_of_freedom=spread.degrees_of_freedom, confidence=confidence
    )
    return ConfidenceEstimate(
        found.confusion, dict(intervals), spread.effective_n, tuple(fitted.fallback_classes)
    )


def _find(
    fitted: ConfidenceMethod,
    logits: Logits,
    judged: JudgedWindow,
    head: PostProcessingHead,
    acronyms: Sequence[str],
) -> MetricsWithEffects:
    probabilities = fitted.class_probabilities(logits)
    confusion = _with_shares(judged.confusion(probabilities, head.costs.shape[1]))
    metrics = metric_gradients(confusion, [one for one in acronyms if one != AUROC], head.costs)
    soft = WindowPosteriors(probabilities, np.zeros_like(probabilities))
    gradients = np.nan_to_num(metrics.gradients)
    effects = soft.effects(judged, gradients, metrics.values)
    found = MetricsWithEffects(confusion, metrics, effects, soft.true_classes(judged, gradients))
    if AUROC not in acronyms:
        return found
    within = WindowPosteriors(np.clip(probabilities, 0, 1), np.zeros_like(probabilities))
    return found.with_areas(*posterior_areas(judged, within))


def _with_shares(confusion: Floats) -> Floats:
    """The matrix without negative entries, with the same diagonal within its column, and the same sums of columns.

    DoC may make single entries negative; the accuracy stays as it is defined.
    """
    if (confusion >= 0).all():
        return confusion
    totals = confusion.sum(axis=0)
    diagonal = np.clip(np.diagonal(confusion), 0, totals[: confusion.shape[0]])
    others = np.maximum(confusion, 0)
    np.fill_diagonal(others, 0)
    rest = totals.copy()
    rest[: diagonal.size] -= diagonal
    sums = others.sum(axis=0)
    # A column without any other entry: the rest is spread evenly.
    others = np.where(sums > 0, others, 1.0)
    np.fill_diagonal(others, 0)
    legal = others * (rest / np.maximum(others.sum(axis=0), np.finfo(np.float64).tiny))
    np.fill_diagonal(legal, diagonal)
    return legal


def _jackknife(
    method: type[ConfidenceMethod],
    calibration: LabeledLogits,
    head: PostProcessingHead,
    window: tuple[Logits, Floats, Clusters | None],
    acronyms: Sequence[str],
) -> Floats:
    """Variance of each metric due to the calibration set, (K,), by leaving out folds of it (whole groups)."""
    folds = crossfitting_folds(calibration, FOLDS)
    chosen = np.unique(np.linspace(0, len(window[0]) - 1, _MOST_ROWS).astype(np.int64))
    logits, counts = window[0][chosen], window[1][chosen]
    judged = JudgedWindow.of_rows(logits, counts, head)
    values = [
        _find(method.fit(calibration.select(folds != fold)), logits, judged, head, acronyms).metrics.values
        for fold in range(int(folds.max()) + 1 if folds.any() else 0)
    ]
    if not values:
        return np.full(1, np.inf)  # a class with a single sample or group: its spread is unknown
    each = np.nan_to_num(np.array(values))
    return (len(each) - 1) * each.var(axis=0)
