"""The report of a cycle as people read it in the terminal."""

import math
from collections.abc import Sequence

from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.deploy import AdaptationReport, AssumptionTest
from lifelong_core.deploy.criterion.expected_criterion import describe_criterion
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric, PerformanceEstimate
from lifelong_core.design.report.words import name_classes
from lifelong_core.metrics.catalogue import metric_info

COLOURS = {"swap": "green", "refuse": "red"}

ASSUMPTION_REJECTED = "assumption_rejected"
"""Code of the warning that the assumption test is rejected."""


def print_outcome(outcome: str, more: str) -> None:
    """What a cycle came to, with its window."""
    echo(outcome, fg=COLOURS.get(outcome, "white"), bold=True, nl=False)
    echo(f" ({more})")


def print_report(report: AdaptationReport, class_names: Sequence[str]) -> None:
    """Reasons, the estimate of each class with its interval, cautions, tests, expected gains and performance."""
    for reason in report.reasons:
        echo(wrap_text(reason.text, indent="    ", first="  - "))
    estimate = report.prevalence
    if estimate is not None:
        shares = zip(
            class_names,
            report.assumed_prevalence,
            estimate.prevalence,
            estimate.low,
            estimate.high,
            strict=True,
        )
        rows = [
            {
                "class": name,
                "assumed": f"{assumed:.3f}",
                "estimated": f"{value:.3f}",
                f"{100 * estimate.confidence:g} % interval": f"{low:.3f} to {high:.3f}",
            }
            for name, assumed, value, low, high in shares
        ]
        print_rows(rows, as_json=False, empty="")
        for caution in estimate.cautions:
            echo(f"Caution: {name_classes(caution, class_names)}", fg="yellow")
    _print_assumption(report.assumption_test)
    _print_gains(report)
    _print_criteria(report)
    if report.performance is not None:
        if report.expected_gain is not None and "EC" in report.performance.estimates:
            text = (
                "The expected cost is estimated twice: above for the decision on a swap, on calibration cases weighed"
                " to the estimated prevalence; below by the method that estimates all metrics. They differ by their"
                " errors."
            )
            echo(wrap_text(text))
        print_performance(report.performance, report.candidate_performance, class_names)


def _print_gains(report: AdaptationReport) -> None:
    """What another head would save, by its decisions and by its probabilities."""
    gain, by_probability = report.expected_gain, report.expected_probability_gain
    if gain is None and by_probability is None and report.candidate_criterion is None:
        echo("No gain was computed, because no other head was considered.")
    if gain is not None:
        text = (
            f"Expected cost of a decision: {gain.current_cost:.4f} now, {gain.candidate_cost:.4f} with a new head; "
            f"gain {gain.value:.4f} ({gain.low:.4f} to {gain.high:.4f})."
        )
        echo(wrap_text(text))
    if by_probability is not None:
        text = (
            f"Expected log loss of the probabilities: {by_probability.current_log_loss:.4f} now, "
            f"{by_probability.candidate_log_loss:.4f} with a new head; gain {by_probability.value:.4f} "
            f"({by_probability.low:.4f} to {by_probability.high:.4f})."
        )
        echo(wrap_text(text))


def _print_criteria(report: AdaptationReport) -> None:
    """What the decision rule will reach, now and with a new head."""
    if report.criterion is not None:
        colour = "red" if report.criterion.is_missed else None
        echo(wrap_text(f"Decision rule: {describe_criterion(report.criterion)}"), fg=colour)
    if report.candidate_criterion is not None:
        echo(wrap_text(f"With a new head: {describe_criterion(report.candidate_criterion)}"))


def _print_assumption(test: AssumptionTest | None) -> None:
    """Whether anything but the prevalence has changed."""
    if test is None:
        return
    verdict = "more has changed" if test.rejected else "nothing speaks against it"
    promise = "" if test.reliable else "; the calibration set is too small for this test to keep its level"
    text = (
        f"Only the prevalence has changed? {verdict} (p = {test.p_value:.2g}, level {test.level:g}){promise}."
    )
    echo(wrap_text(text))
    for item in test.disagreements if test.rejected else ():
        echo(wrap_text(item.text, indent="    ", first="  - "))


def print_performance(
    current: PerformanceEstimate, candidate: PerformanceEstimate | None, class_names: Sequence[str]
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
    acronym, bracket, index = key.rstrip("]").partition("[")
    name = f"{metric_info(acronym).name} ({acronym})"
    return f"{name} of {class_names[int(index)]}" if bracket else name


def _format(key: str, estimate: PerformanceEstimate) -> str:
    """Value with interval; a rejected assumption test is stated beside it."""
    metric: EstimatedMetric | None = estimate.estimates.get(key)
    if metric is None or math.isnan(metric.value):
        return "undefined"
    is_rejected = any(warning.code == ASSUMPTION_REJECTED for warning in estimate.warnings)
    note = " (assumption rejected)" if is_rejected else ""
    return f"{metric.value:.3f}, {metric.low:.3f} to {metric.high:.3f}{note}"


def _describe_method(estimate: PerformanceEstimate) -> str:
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
