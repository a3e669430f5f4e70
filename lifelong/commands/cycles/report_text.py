"""The report of a cycle as people read it in the terminal."""

from collections.abc import Sequence

from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.deploy import AdaptationReport
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.design.report.words import name_classes
from lifelong_core.store.cycles.statements import (
    describe_assumption,
    describe_criteria,
    describe_estimate,
    describe_gains,
    describe_method,
    name_metric,
)

COLOURS = {"swap": "green", "refuse": "red"}


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
    for number, text in enumerate(describe_assumption(report.assumption_test)):
        echo(wrap_text(text, indent="    ", first="  - ") if number else wrap_text(text))
    for text in describe_gains(report):
        echo(wrap_text(text))
    is_missed = report.criterion is not None and report.criterion.is_missed
    for number, text in enumerate(describe_criteria(report)):
        echo(wrap_text(text), fg="red" if is_missed and number == 0 else None)
    if report.performance is not None:
        if report.expected_gain is not None and "EC" in report.performance.estimates:
            text = (
                "The expected cost is estimated twice: above for the decision on a swap, on calibration cases weighed"
                " to the estimated prevalence; below by the method that estimates all metrics. They differ by their"
                " errors."
            )
            echo(wrap_text(text))
        print_performance(report.performance, report.candidate_performance, class_names)


def print_performance(
    current: PerformanceEstimate, candidate: PerformanceEstimate | None, class_names: Sequence[str]
) -> None:
    """Each metric with its interval, then method, validated error, assumptions and warnings."""
    estimates = {"now": current} if candidate is None else {"now": current, "with the new head": candidate}
    echo("Estimated performance (no labels):")
    rows = [
        {"metric": name_metric(key, class_names)}
        | {head: describe_estimate(key, estimate) for head, estimate in estimates.items()}
        for key in current.estimates
    ]
    print_rows(rows, as_json=False, empty="")
    echo(wrap_text(describe_method(current)))
    for assumption in current.assumptions:
        echo(wrap_text(f"It assumes: {assumption}"))
    texts = {warning.text: None for estimate in estimates.values() for warning in estimate.warnings}
    for text in texts:
        echo(wrap_text(f"Warning: {text}"), fg="yellow")
