"""The decisions that a validation judges, in words, and the values of the likeliest class beside them."""

from dataclasses import dataclass

from lifelong_core.decision_rules.rules import Target
from lifelong_core.decision_rules.wording import METRIC_NAMES
from lifelong_core.design.report.words import (
    format_count,
    interval_in_words,
    name_classes,
    number,
    of,
)
from lifelong_core.design.validation.decisions.decide import ChosenCutOff
from lifelong_core.design.validation.decisions.targets import JudgedDecisions
from lifelong_core.design.validation.result import ValidationResult

VERDICTS = {"reached": "reached", "missed": "missed", "open": "open: the interval holds the target"}


@dataclass(frozen=True)
class RowOfBoth:
    """A metric of the judged decisions and of the likeliest class."""

    label: str
    of: str
    judged: str
    by_likeliest: str


def decision_lines(result: ValidationResult) -> list[str]:
    """Sentences on decisions, the target that they reach and the cut-off; empty without rule and given decisions."""
    found = result.decisions
    if found.rule is None and found.source != "given":
        return []
    return [_source(found, result), *_target(found, result), *_cut_off(found, result)]


def rows_of_both(result: ValidationResult) -> list[RowOfBoth]:
    """The metrics that judge decisions, under these and under the likeliest class, in their order."""
    own = {(value.label, value.class_index): value for value in result.values}
    return [
        RowOfBoth(
            value.label,
            of(value, result.class_names),
            interval_in_words(own[value.label, value.class_index]),
            interval_in_words(value),
        )
        for value in result.decisions.by_likeliest
    ]


def _source(found: JudgedDecisions, result: ValidationResult) -> str:
    judged = f"{format_count(found.samples, 'sample')} are judged"
    match found.source:
        case "given":
            asked = "" if found.rule is None else f" The answered rule (FP2.6) is: {found.rule}."
            text = f"The decisions that were given for {judged}.{asked}"
        case "rule":
            text = f"The decisions of the answered rule (FP2.6) on {judged}: {found.rule}."
        case "likeliest":
            text = f"The likeliest class is judged on {format_count(found.samples, 'sample')}: {found.reason}"
    return name_classes(text, result.class_names)


def _target(found: JudgedDecisions, result: ValidationResult) -> list[str]:
    target = found.target
    if target is None:
        return []
    name = f"{METRIC_NAMES[target.metric]} of {result.class_names[target.class_index]}"
    where = "" if target.prevalence is None else " at the stated class shares of use"
    return [
        f"Target: {name} {Target(target.metric, target.target)}. It is {interval_in_words(target.reached)}{where}: "
        f"{VERDICTS[target.verdict]}."
    ]


def _cut_off(found: JudgedDecisions, result: ValidationResult) -> list[str]:
    cut = found.cut_off
    if cut is None:
        return []
    others = "other samples" if cut.chosen_on == "other_data" else "samples of the other half of the cases"
    shares = "" if cut.prevalence is None else ", at the stated class shares of use"
    name = result.class_names[cut.class_index]
    limit = "none" if cut.threshold is None else number(cut.threshold)
    if cut.prevalence is not None and cut.threshold is not None:
        limit += " (as the model gives it, at the class shares of the data and not of use)"
    return [
        f"Cut-off of the probability of {name}: {limit}, chosen on {cut.samples:,} {others}{shares}, where "
        f"{_metric(cut)} is {number(cut.value)}."
    ]


def _metric(cut: ChosenCutOff) -> str:
    """The name of the metric by which the cut-off was chosen."""
    name = METRIC_NAMES.get(cut.metric, cut.metric)
    return f"the {name}" if cut.metric == "F_beta" else name
