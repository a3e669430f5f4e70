"""Plots and tables of a model by subgroup, such as scanner or site."""

from collections.abc import Iterable, Sequence

from lifelong_core.design.recommendation.wording import DIRECTIONS
from lifelong_core.design.report.basis import samples_behind
from lifelong_core.design.report.forest import Entry, Forest, forest, thresholds_of
from lifelong_core.design.report.tables import MOST_CLASSES, is_said_once
from lifelong_core.design.report.words import missing_reason, of
from lifelong_core.design.validation.result import SubgroupMetric, SubgroupResult, ValidationResult
from lifelong_core.design.validation.subgroup_results import judged_samples

MOST_DRAWN = 40
"""most subgroups of a plot; with more, there is only the table"""
MOST_ON_PAPER = 4
"""values of a row whose intervals fit on one line of a printed page"""


def subgroup_columns(result: ValidationResult) -> list[SubgroupMetric]:
    """The values in the row of a subgroup: summaries, and values of classes only for metrics without a summary."""
    found = result.subgroups[0].values
    summed = {value.label for value in found if value.class_index is None}
    return [value for value in found if value.class_index is None or value.label not in summed][:MOST_CLASSES]


def subgroup_text(group: SubgroupResult, column: SubgroupMetric) -> SubgroupMetric:
    """The value of a column."""
    wanted = (column.label, column.class_index)
    return next(value for value in group.values if (value.label, value.class_index) == wanted)


def missing_reasons(group: SubgroupResult, columns: Iterable[SubgroupMetric]) -> list[str]:
    """The reasons for missing values or intervals of a subgroup, each once with all its metrics."""
    labels: dict[str, list[str]] = {}
    for value in (subgroup_text(group, column) for column in columns):
        reason = missing_reason(value)
        if reason is not None:
            labels.setdefault(reason, []).append(value.label)
    return [", ".join(own) + reason for reason, own in labels.items()]


def judged_of(group: SubgroupResult, column: SubgroupMetric) -> int:
    """The number of the subgroup's samples behind the value of a column."""
    judged = judged_samples(subgroup_text(group, column).notes)
    return group.samples if judged is None else judged


def partly_judged(result: ValidationResult, columns: Iterable[SubgroupMetric]) -> list[SubgroupMetric]:
    """The columns whose values rest on a part of the samples, as a cut-off was chosen on the others."""
    return [one for one in columns if _behind_all(result, one) < result.samples]


def _behind_all(result: ValidationResult, column: SubgroupMetric) -> int:
    return samples_behind(result, result.value(column.label, column.class_index))


def has_remarks(result: ValidationResult, columns: Sequence[SubgroupMetric]) -> bool:
    """Whether a subgroup has a warning, or a value of it is missing."""
    return any(group.warnings or missing_reasons(group, columns) for group in result.subgroups)


def subgroup_forests(result: ValidationResult) -> list[Forest]:
    """A plot for each column: the value of all samples, and below it that of each subgroup."""
    if not 0 < len(result.subgroups) <= MOST_DRAWN:
        return []
    wanted = thresholds_of(result.acceptance)
    found: list[Forest] = []
    for column in subgroup_columns(result):
        whole = result.value(column.label, column.class_index)
        threshold = wanted.get((column.label, column.class_index), wanted.get((column.label, None)))
        every = "all judged samples" if partly_judged(result, [column]) else "all samples"
        entries = [Entry(every, whole, whole.orientation, threshold)]
        entries += [
            Entry(
                _name(one),
                subgroup_text(one, column),
                whole.orientation,
                threshold,
                is_rough=bool(one.warnings),
            )
            for one in result.subgroups
        ]
        is_one = column.value_of == "all_classes" or is_said_once(result, column.label)
        title = column.label if is_one else f"{column.label} · {of(column, result.class_names)}"
        found.append(forest(entries, f"{title}: {DIRECTIONS[whole.orientation]}", reference=whole.estimate))
    return found


def _name(group: SubgroupResult) -> str:
    """The name of a subgroup, marked if it has few cases."""
    return ("⚠ " if group.warnings else "") + f"{group.attribute}: {group.key}"
