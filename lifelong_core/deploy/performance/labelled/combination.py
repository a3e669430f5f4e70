"""The difference estimate, combined with the label-free estimate where its assumption holds."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.performance.derived_metrics import MetricGradients, metric_intervals
from lifelong_core.deploy.performance.estimate import EstimatedMetric
from lifelong_core.deploy.performance.labelled.estimate import LabelledEstimate, MetricSpread
from lifelong_core.values.scientific import normal_quantile

NOT_COMBINED = (
    "The label-free estimate is left out, because more than the prevalence differs from the calibration set."
)
_DOUBT = 2.0
"""Factor of the label-free estimate's variance: where the assumption test does not reject, small deviations from the
assumption remain, and its intervals of 95 % cover less (docs/benchmarks.md, few labels)."""
_LEAST_SHARE = 0.1
"""Least variance of the label-free estimate beside the window's, as a share of its variance."""


def combined_with(
    difference: LabelledEstimate,
    label_free: Mapping[str, EstimatedMetric],
    *,
    assumption_rejected: bool,
    confidence: float = 0.95,
) -> LabelledEstimate:
    """Combine a difference estimate with the label-free estimate of the same window.

    The label-free estimate has the weight that its own interval deserves, less where the labels contradict it. It has
    none where the assumption test rejects: a label-free estimate that is trusted under a shift of another kind misses
    the truth without a sign of it.

    Args:
        difference: estimate with labels, of `difference_estimate`.
        label_free: `estimates` of the PerformanceEstimate of the same window and head.
        assumption_rejected: whether the test "only the prevalence changed" rejects on this window.
        confidence: nominal coverage of the intervals of `label_free`.

    Returns:
        The estimate with method "combined", or `difference` with a caution where the assumption is rejected.
    """
    if assumption_rejected:
        return replace(difference, cautions=(*difference.cautions, NOT_COMBINED))
    quantile = float(normal_quantile((1 + as_level(confidence, "confidence")) / 2))
    names = [name for name in difference.estimates if name in label_free]
    estimates, spreads = dict(difference.estimates), dict(difference.spreads)
    for name in names:
        value, low, high = label_free[name]
        ours, spread = difference.estimates[name], difference.spreads[name]
        if not np.isfinite([value, low, high, *ours, spread.labels]).all() or spread.labels <= 0:
            continue
        error = (high - low) / 2 / quantile
        combined, variance = _combine(ours.value, spread, value, error**2)
        spreads[name] = MetricSpread(variance, spread.window, spread.degrees_of_freedom)
        estimates[name] = _interval(combined, spreads[name], difference, name)
    return replace(difference, method="combined", estimates=estimates, spreads=spreads)


def _combine(ours: float, spread: MetricSpread, label_free: float, variance: float) -> tuple[float, float]:
    """Combined value, and its variance due to calibration set and labels.

    Both share the window's samples, so that the label-free estimate errs beside it by what its variance exceeds the
    window's. Where the two differ by more than their variances explain, the excess counts as its error (DerSimonian and
    Laird 1986).
    """
    own = _DOUBT * max(variance - spread.window, _LEAST_SHARE * variance)
    own = max(own, (ours - label_free) ** 2 - spread.labels)
    weight = own / (own + spread.labels)
    return label_free + weight * (ours - label_free), weight * spread.labels


def _interval(value: float, spread: MetricSpread, difference: LabelledEstimate, name: str) -> EstimatedMetric:
    bounds = np.array([difference.bounds[name]])
    single = MetricGradients((name,), np.array([value]), np.zeros((1, 1, 1)), bounds)
    variance = np.array([spread.labels + spread.window])
    found = metric_intervals(
        single, variance, degrees_of_freedom=spread.degrees_of_freedom, confidence=difference.confidence
    )
    return found[name]
