"""A cycle in words: its report, what became of the head that it wanted, and the decisions that it affects."""

import math
from collections.abc import Sequence

from lifelong_core.deploy import AdaptationReport, AssumptionTest
from lifelong_core.deploy.criterion.expected_criterion import describe_criterion
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.entities.affected import AffectedFiguresAnswer
from lifelong_core.entities.cycles import CycleFields
from lifelong_core.values.errors import InvalidInputError

ASSUMPTION_REJECTED = "assumption_rejected"
"""Code of the warning that the assumption test is rejected."""


def readable_report(cycle: CycleFields) -> AdaptationReport | None:
    """The report without what only a replay needs; None: another version of the product wrote it."""
    try:
        return AdaptationReport.from_document(
            {key: value for key, value in cycle.report.items() if key != "inputs"}
        )
    except InvalidInputError:
        return None


def describe_consequences(cycle: CycleFields) -> list[str]:
    """What became of the head that the cycle wanted, as sentences."""
    lines = [f"Head {cycle.head_version} served meanwhile."]
    if cycle.published_version is not None:
        lines.append(f"Published head {cycle.published_version}.")
    elif cycle.rejection is not None:
        rejection = cycle.rejection
        at = rejection.rejected_at.isoformat(timespec="seconds")
        lines.append(f"Its proposal was rejected by {rejection.rejected_by} at {at}: {rejection.reason}")
    elif cycle.proposal is not None:
        lines.append("It proposes a head.")
    elif cycle.outcome == "swap":
        lines.append("Nothing was published: the mode was shadow.")
    return lines


def describe_affected(figures: AffectedFiguresAnswer, version: int | None) -> str:
    """How many earlier decisions the new head changes, as sentences; `version` None: it was not published."""
    end = f"{figures.until:%Y-%m-%d %H:%M:%S}Z" if version is None else "the swap"
    new_head = "the other head" if version is None else f"head {version}"
    return (
        f"Of {figures.predictions:,} decisions from {figures.since:%Y-%m-%d %H:%M:%S}Z to {end}, {new_head}"
        f" would make {figures.affected:,} otherwise ({100 * figures.share:.1f} %). As made, they cost"
        f" {figures.expected_cost:.6g} more in all, {figures.mean_cost:.4g} each, by the probabilities of"
        " that head."
    )


def describe_changes(figures: AffectedFiguresAnswer, names: Sequence[str]) -> list[str]:
    """In which way they differ; `names` are those of the decisions."""
    return [
        f"{names[change.decision]} -> {names[change.new_decision]}: {change.count:,},"
        f" cost {change.expected_cost:.6g} more as made"
        for change in figures.changes
    ]


def describe_gains(report: AdaptationReport) -> list[str]:
    """What another head would save, by its decisions and by its probabilities, as sentences."""
    gain, by_probability = report.expected_gain, report.expected_probability_gain
    if gain is None and by_probability is None and report.candidate_criterion is None:
        return ["No gain was computed, because no other head was considered."]
    lines: list[str] = []
    if gain is not None:
        lines.append(
            f"Expected cost of a decision: {gain.current_cost:.4f} now, {gain.candidate_cost:.4f} with a new head; "
            f"gain {gain.value:.4f} ({gain.low:.4f} to {gain.high:.4f})."
        )
    if by_probability is not None:
        lines.append(
            f"Expected log loss of the probabilities: {by_probability.current_log_loss:.4f} now, "
            f"{by_probability.candidate_log_loss:.4f} with a new head; gain {by_probability.value:.4f} "
            f"({by_probability.low:.4f} to {by_probability.high:.4f})."
        )
    return lines


def describe_criteria(report: AdaptationReport) -> list[str]:
    """What the decision rule will reach, now and with a new head, as sentences."""
    named = (("Decision rule", report.criterion), ("With a new head", report.candidate_criterion))
    return [f"{name}: {describe_criterion(found)}" for name, found in named if found is not None]


def describe_assumption(test: AssumptionTest | None) -> list[str]:
    """Whether anything but the prevalence has changed: a sentence, and what disagrees if the test is rejected."""
    if test is None:
        return []
    verdict = "more has changed" if test.rejected else "nothing speaks against it"
    promise = "" if test.reliable else "; the calibration set is too small for this test to keep its level"
    text = (
        f"Only the prevalence has changed? {verdict} (p = {test.p_value:.2g}, level {test.level:g}){promise}."
    )
    return [text, *(item.text for item in (test.disagreements if test.rejected else ()))]


def name_metric(key: str, class_names: Sequence[str]) -> str:
    """Key of an estimate with the name of its class.

    Examples:
        >>> name_metric("TPR[1]", ("benign", "malignant")), name_metric("AC", ("benign", "malignant"))
        ('Sensitivity (TPR) of malignant', 'Accuracy (AC)')
    """
    acronym, bracket, index = key.rstrip("]").partition("[")
    from lifelong_core.metrics.catalogue import metric_info  # which serving does not need

    name = f"{metric_info(acronym).name} ({acronym})"
    return f"{name} of {class_names[int(index)]}" if bracket else name


def describe_estimate(key: str, estimate: PerformanceEstimate) -> str:
    """Value with interval; a rejected assumption test is stated beside it."""
    metric = estimate.estimates.get(key)
    if metric is None or math.isnan(metric.value):
        return "undefined"
    is_rejected = any(warning.code == ASSUMPTION_REJECTED for warning in estimate.warnings)
    note = " (assumption rejected)" if is_rejected else ""
    return f"{metric.value:.3f}, {metric.low:.3f} to {metric.high:.3f}{note}"


def describe_method(estimate: PerformanceEstimate) -> str:
    """The method of an estimate, its validated error and its samples, as a sentence."""
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
