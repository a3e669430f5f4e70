"""On how many samples and groups values rest, in short words."""

from lifelong_core.design.report.words import format_count
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.by_group import OF_ALL_SAMPLES, groups_with_value
from lifelong_core.design.validation.values.metric_value import MetricValue
from lifelong_core.metrics import METRICS

POOLED = "pooled"


def judged_decisions(result: ValidationResult) -> int:
    """The number of samples whose decisions are judged."""
    return result.samples if result.decisions is None else result.decisions.samples


def judged_note(result: ValidationResult) -> str:
    """How many decisions are judged, as "decisions are judged on 1,200"; empty if all are."""
    judged = judged_decisions(result)
    return "" if judged == result.samples else f"decisions are judged on {judged:,}"


def samples_behind(result: ValidationResult, value: MetricValue) -> int:
    """The number of samples that a value rests on."""
    cut_offs = [one.cut_off for one in result.values if one.label == value.label and one.cut_off is not None]
    if cut_offs:
        return cut_offs[0].samples
    is_of_decisions = METRICS[value.metric].family == "counting" and value.metric != "NB"
    return judged_decisions(result) if is_of_decisions else result.samples


def groups_behind(result: ValidationResult, value: MetricValue) -> str:
    """The number of groups that a value is the mean of, as "30 of 35"; "pooled": it is no mean over groups.

    The mean of the classes has the range of its classes.
    """
    classes = [one for one in result.values if one.label == value.label and one.class_index is not None]
    parts = classes if value.class_index is None and classes else [value]
    counts = [found for one in parts if (found := groups_with_value(one.notes)) is not None]
    if not counts:
        return POOLED
    fewest, most, total = min(counts)[0], max(counts)[0], counts[0][1]
    text = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return text if fewest == total else f"{text} of {total:,}"


def pooled_labels(result: ValidationResult) -> list[str]:
    """The metrics that are no means over groups."""
    return [label for label in result.labels if groups_behind(result, result.value(label)) == POOLED]


def aggregation_note(result: ValidationResult) -> str:
    """How the metrics are aggregated; empty if over all samples."""
    if result.aggregation != "by_group":
        return ""
    if pooled_labels(result):
        return "metrics are means over groups, but for those that are pooled"
    return "each metric is a mean over groups"


def aggregation_lines(result: ValidationResult) -> list[str]:
    """Sentences on the column of groups; empty if metrics are those of all samples."""
    if result.aggregation != "by_group":
        return []
    lines: list[str] = []
    if len(pooled_labels(result)) < len(result.labels):
        lines.append(
            "groups: how many groups the mean is over. A group has no value where the metric is undefined, such as the "
            "sensitivity of a patient without a sick image."
        )
    alone = [label for label in pooled_labels(result) if result.value(label).prevalence is None]
    if alone:
        lines.append(f"{', '.join(alone)}: {OF_ALL_SAMPLES[0].lower()}{OF_ALL_SAMPLES[1:]}")
    return lines


def samples_text(result: ValidationResult) -> str:
    """Samples, groups, judged decisions and aggregation, in one line."""
    groups = f" of {result.cases:,} groups" if result.groups else ""
    parts = (
        f"{format_count(result.samples, 'sample')}{groups}",
        judged_note(result),
        aggregation_note(result),
    )
    return "; ".join(filter(None, parts))
