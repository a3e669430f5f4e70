"""The comparison of estimated and realised performance in words, for people."""

import math
from collections.abc import Iterator

from lifelong_core.deploy.performance.estimate import EstimatedMetric
from lifelong_core.deploy.performance.labelled.agreement import Agreement
from lifelong_core.errors import NotFoundError
from lifelong_core.store.performance.records import ComparedPeriod, PopulationPerformance

TITLES = {"AC": "accuracy", "EC": "expected cost"}
"""Names of the compared metrics, by acronym."""


def not_computed(reference: str, environment: str) -> NotFoundError:
    """Return the error for a population without a comparison."""
    return NotFoundError(
        f"there is no comparison of the performance of {reference} in {environment} yet.",
        field="environment",
        hint="A monitor computes it in its next round after the first estimate of a cycle or the first label.",
    )


def describe_metric(metric: EstimatedMetric | None) -> str:
    """Return a value with its interval as text.

    Examples:
        >>> describe_metric(EstimatedMetric(0.8123, 0.75, 0.86))
        '0.812 (0.750 to 0.860)'
        >>> describe_metric(EstimatedMetric(0.5, float("nan"), float("nan")))
        '0.500'
        >>> describe_metric(None)
        ''
    """
    if metric is None or math.isnan(metric.value):
        return ""
    if math.isnan(metric.low) or math.isnan(metric.high):
        return f"{metric.value:.3f}"
    return f"{metric.value:.3f} ({metric.low:.3f} to {metric.high:.3f})"


def describe_comparison(performance: PopulationPerformance) -> list[str]:
    """Return sentences about the newest estimate, the labelled predictions beside it, and whether they agree."""
    newest = performance.newest
    if newest is None:
        return ["No cycle has estimated the performance yet, so there is nothing to compare labels with."]
    return list(_sentences(newest))


def describe_warnings(performance: PopulationPerformance) -> list[str]:
    """Return the warnings: disagreement, calibration drift, selection of labelled samples, limits of the estimate."""
    newest = performance.newest
    agreement = () if newest is None else newest.agreement.values()
    checks = (performance.calibration_drift, performance.selection)
    return [
        *(one.text for one in agreement if one.verdict == "disagree"),
        *(check.text for check in checks if check is not None and check.rejected),
        *(() if newest is None or newest.estimated is None else newest.estimated.warnings),
        *performance.left_out,
    ]


def _sentences(newest: ComparedPeriod) -> Iterator[str]:
    estimated, realised = newest.estimated, newest.realised
    for name, title in TITLES.items():
        value = describe_metric(None if estimated is None else estimated.metrics.get(name))
        if not value:
            continue
        sentence = f"Head {newest.head_version}: {title} is {value} by the estimate without labels"
        counted = describe_metric(None if realised is None else realised.metrics.get(name))
        if not counted or realised is None:
            yield f"{sentence}; none of its predictions has a label."
            continue
        yield f"{sentence}, and {counted} on {_labels(realised.samples)}{_verdict(newest.agreement.get(name))}"


def _labels(number: int) -> str:
    return "1 labelled prediction" if number == 1 else f"{number} labelled predictions"


def _verdict(found: Agreement | None) -> str:
    if found is None or found.verdict == "too_few_labels" or found.p_value is None:
        return "; that is too few labels to compare them."
    return f". They {found.verdict} (p = {found.p_value:.2g})."
