"""The estimated performance of a cycle's heads, as people read it in the terminal."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric, PerformanceEstimate

ASSUMPTION_REJECTED = "assumption_rejected"
"""Code of the warning that the assumption test is rejected."""


def print_performance(
    current: "PerformanceEstimate", candidate: "PerformanceEstimate | None", class_names: Sequence[str]
) -> None:
    """Each metric with its interval, then method, validated error, assumptions and warnings."""
    estimates = {"now": current} if candidate is None else {"now": current, "with the new head": candidate}
    echo("Estimated performance (no labels):")
    rows = [
        {"metric": name_metric(key, class_names)}
        | {head: _format(key, estimate) for head, estimate in estimates.items()}
        for key in current.estimates
    ]
    print_rows(rows, as_json=False, empty="")
    echo(wrap_text(_describe_method(current)))
    for assumption in current.assumptions:
        echo(wrap_text(f"It assumes: {assumption}"))
    texts = {warning.text: None for estimate in estimates.values() for warning in estimate.warnings}
    for text in texts:
        echo(wrap_text(f"Warning: {text}"), fg="yellow")


def name_metric(key: str, class_names: Sequence[str]) -> str:
    """Key of an estimate with the name of its class.

    Examples:
        >>> name_metric("TPR[1]", ("benign", "malignant")), name_metric("AC", ("benign", "malignant"))
        ('Sensitivity (TPR) of malignant', 'Accuracy (AC)')
    """
    from lifelong_core.metrics.catalogue import metric_info

    acronym, bracket, index = key.rstrip("]").partition("[")
    name = f"{metric_info(acronym).name} ({acronym})"
    return f"{name} of {class_names[int(index)]}" if bracket else name


def _format(key: str, estimate: "PerformanceEstimate") -> str:
    """Value with interval; a rejected assumption test is stated beside it."""
    metric: EstimatedMetric | None = estimate.estimates.get(key)
    if metric is None or math.isnan(metric.value):
        return "undefined"
    is_rejected = any(warning.code == ASSUMPTION_REJECTED for warning in estimate.warnings)
    note = " (assumption rejected)" if is_rejected else ""
    return f"{metric.value:.3f}, {metric.low:.3f} to {metric.high:.3f}{note}"


def _describe_method(estimate: "PerformanceEstimate") -> str:
    error = estimate.validated_error
    validated = (
        "its error was not simulated"
        if error is None
        else f"mean error of the accuracy in simulated windows {error:.3f}"
    )
    return (
        f"{100 * estimate.confidence:g} % intervals; method {estimate.method}: {validated};"
        f" {estimate.samples} samples, worth {estimate.effective_samples:.0f} independent ones."
    )
