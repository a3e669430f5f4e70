"""Estimates of performance that use the estimated prevalence: posteriors, rates, and their mean after a scale match."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.performance.derived_metrics import (
    AUROC,
    MetricGradients,
    metric_gradients,
    metric_intervals,
    metric_names,
)
from lifelong_core.deploy.performance.effects import Effects, TrueClasses
from lifelong_core.deploy.performance.performance_estimate import MATCHED, POSTERIORS, RATES, EstimatedMetric
from lifelong_core.deploy.performance.ranking import posterior_areas, rate_areas
from lifelong_core.deploy.performance.unlabelled_window import JudgedHead, combined
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True, eq=False)
class MetricsWithEffects:
    """Metrics of a window, with effects of samples on them."""

    confusion: Floats
    """shape (C, D), shares"""
    metrics: MetricGradients
    effects: Effects
    truth: TrueClasses
    """of the window"""

    def intervals(self, analysis: Analysis, confidence: float) -> dict[str, EstimatedMetric]:
        """Intervals by the first-order effects."""
        variances, freedom = self.effects.variances(analysis, self.truth)
        # With unknown spread the interval is the whole range.
        return dict(
            metric_intervals(self.metrics, variances, degrees_of_freedom=freedom, confidence=confidence)
        )

    def with_areas(self, areas: Effects, truth: TrueClasses) -> Self:
        """The metrics and the AUROC of each class, in a binary task of class 1."""
        classes = areas.values.size
        if classes == 2:
            areas, truth = areas.select(slice(1, 2)), truth.select(slice(1, 2))
        bounds = np.tile([0.0, 1.0], (areas.values.size, 1))
        metrics = MetricGradients(
            (*self.metrics.names, *metric_names(AUROC, classes)),
            np.concatenate([self.metrics.values, areas.values]),
            self.metrics.gradients,
            np.vstack([self.metrics.bounds, bounds]),
        )
        return type(self)(self.confusion, metrics, self.effects.with_more(areas), self.truth.with_more(truth))


def estimate_by_prevalence(judged: JudgedHead, method: str, acronyms: Sequence[str]) -> MetricsWithEffects:
    """Estimate metrics by one of POSTERIORS, RATES and MATCHED.

    The doubt of MATCHED is half the difference of its two parts: each is right under other circumstances. After a match
    it grows by the difference that the match makes, the less, the clearer the scale differs.

    Args:
        judged: head and window.
        method: the method.
        acronyms: of METRICS that count decisions, and AUROC.
    """
    pair = judged.confusions(method)
    confusion = combined(method, *pair)
    metrics = metric_gradients(confusion, [one for one in acronyms if one != AUROC], judged.head.costs)
    gradients = np.nan_to_num(metrics.gradients)
    parts = judged.effects(method, gradients, metrics.values)
    difference = np.einsum("kcd,cd->k", gradients, pair[0] - pair[1])
    effects = _of_method(method, *parts, metrics.values, difference)
    match = judged.evidence.match(method)
    if match.doubt:
        unmatched = combined(method, *judged.confusions(POSTERIORS))
        moved = np.einsum("kcd,cd->k", gradients, confusion - unmatched)
        effects = effects.with_doubt(match.doubt * (moved / 2) ** 2)
    truth = judged.evidence.posteriors(method).true_classes(judged.window, gradients)
    found = MetricsWithEffects(confusion, metrics, effects, truth)
    return found.with_areas(*_areas(judged, method)) if AUROC in acronyms else found


def agree_on_accuracy(judged: JudgedHead, method: str, confidence: float) -> bool:
    """Whether the intervals of the accuracy by posteriors and by rates overlap."""
    estimates: list[EstimatedMetric] = []
    for part, confusion in zip((POSTERIORS, RATES), judged.confusions(method), strict=True):
        metrics = metric_gradients(confusion, ["AC"])
        effects = _of_method(part, *judged.effects(method, metrics.gradients, metrics.values))
        truth = judged.evidence.posteriors(method).true_classes(judged.window, metrics.gradients)
        estimated = MetricsWithEffects(confusion, metrics, effects, truth)
        estimates.append(estimated.intervals(judged.evidence.match(method).analysis, confidence)["AC"])
    return max(one.low for one in estimates) <= min(one.high for one in estimates)


def _of_method(
    method: str,
    posteriors: Effects,
    rates: Effects,
    values: Floats | None = None,
    difference: Floats | None = None,
) -> Effects:
    """Effects of one of the parts, or of their mean with its values and the difference of the parts, (K,) each."""
    if values is None or difference is None or method != MATCHED:
        return rates if method == RATES else posteriors
    return Effects.average(posteriors, rates, values, (difference / 2) ** 2)


def _areas(judged: JudgedHead, method: str) -> tuple[Effects, TrueClasses]:
    """AUROC of each class."""
    evidence = judged.evidence
    by_posteriors, truth = posterior_areas(judged.window, evidence.posteriors(method))
    prevalence = evidence.match(method).analysis.estimate.prevalence
    by_rates = rate_areas(judged.rates(method), prevalence, judged.window.counts.size)
    values = combined(method, by_posteriors.values, by_rates.values)
    difference = by_posteriors.values - by_rates.values
    return _of_method(method, by_posteriors, by_rates, values, difference), truth
