"""Sections of a page: leaders of a comparison, judged decisions, subgroups such as scanner or site."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lifelong_core.decision_rules.rules import Target
from lifelong_core.decision_rules.wording import METRIC_NAMES
from lifelong_core.design.recommendation.wording import DIRECTIONS
from lifelong_core.design.report.basis import samples_behind
from lifelong_core.design.report.forest import Entry, Forest, forest, thresholds_of
from lifelong_core.design.report.tables import MOST_CLASSES, is_said_once
from lifelong_core.design.report.words import (
    format_count,
    interval_in_words,
    missing_reason,
    name_classes,
    number,
    of,
    percent,
)
from lifelong_core.design.validation.comparison import MetricRanking, ModelComparison, OverallRanking, Scheme
from lifelong_core.design.validation.decisions.decide import ChosenCutOff
from lifelong_core.design.validation.decisions.targets import JudgedDecisions
from lifelong_core.design.validation.result import SubgroupMetric, SubgroupResult, ValidationResult
from lifelong_core.design.validation.subgroup_results import judged_samples

SCHEMES: dict[Scheme, str] = {"rank_then_mean": "rank then mean", "mean_then_rank": "mean then rank"}
SCORES: dict[Scheme, str] = {"rank_then_mean": "Mean of ranks", "mean_then_rank": "Mean of values"}
"""The score that orders the models, in words"""
EXPLANATIONS: dict[Scheme, str] = {
    "rank_then_mean": "Each metric ranks the models; the mean of these ranks, over the metrics, puts them in order.",
    "mean_then_rank": "The values of each metric are brought to a scale from 0, its worst, to 1, its best; the mean of"
    " these values, over the metrics, puts the models in order.",
}

VERDICTS = {"reached": "reached", "missed": "missed", "open": "open: the interval holds the target"}

MOST_DRAWN = 40
"""most subgroups of a plot; with more, there is only the table"""
MOST_ON_PAPER = 4
"""values of a row whose intervals fit on one line of a printed page"""


@dataclass(frozen=True)
class Leaders:
    """The models in the first place of the orders that answer the question."""

    names: tuple[str, ...]
    asked: MetricRanking | None
    """the ranking by the one metric that the interview asked for; None: all metrics together answer it"""
    chances: tuple[tuple[str, float], ...]
    """by the name of an order over all metrics, how often its first model stays first"""


def overall_rankings(comparison: ModelComparison) -> tuple[OverallRanking, OverallRanking]:
    """The orders by all metrics, the one that answers the question first."""
    return comparison.rank_then_mean, comparison.mean_then_rank


def leaders_of(comparison: ModelComparison) -> Leaders:
    """The models in first place."""
    asked, overall = _asked(comparison), overall_rankings(comparison)
    counted = overall if asked is None else (asked,)
    first = {one.model for ranking in counted for one in ranking.models if one.rank == ranking.models[0].rank}
    chances = ((SCHEMES[one.scheme], one.models[0].best) for one in overall if one.models)
    return Leaders(tuple(sorted(first)), asked, tuple(chances))


def leader_lines(comparison: ModelComparison) -> tuple[str, str]:
    """The models in first place, and the order that puts them there."""
    leaders = leaders_of(comparison)
    headline = comparison.headline
    why = f" {headline.why}"
    if headline.label is None:
        why += f" Read the order by {SCHEMES['rank_then_mean']} first."
    if not leaders.names:
        return "No order", f"No metric allows one.{why}"
    title = f"{leaders.names[0]} comes first" if len(leaders.names) == 1 else "No clear leader"
    share = f"{', '.join(leaders.names)} share the first place"
    if leaders.asked is not None:
        best = f"in {percent(leaders.asked.models[0].best)} of the resampled data sets"
        return title, f"By {leaders.asked.label}, {best if len(leaders.names) == 1 else share}.{why}"
    if len(leaders.names) > 1:
        return (
            title,
            f"The ways of combining the metrics, or ties, put {', '.join(leaders.names)} first.{why}",
        )
    ways = " and ".join(
        f"in {percent(chance)} of the resampled data sets by {way}" for way, chance in leaders.chances
    )
    return title, f"By all metrics together, it stays first {ways}.{why}"


def _asked(comparison: ModelComparison) -> MetricRanking | None:
    found = next((one for one in comparison.rankings if one.label == comparison.headline.label), None)
    return found if found is not None and found.models else None


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


def _target(judged: JudgedDecisions, result: ValidationResult) -> list[str]:
    target = judged.target
    if target is None:
        return []
    name = f"{METRIC_NAMES[target.metric]} of {result.class_names[target.class_index]}"
    where = "" if target.prevalence is None else " at the stated class shares of use"
    return [
        f"Target: {name} {Target(target.metric, target.target)}. It is {interval_in_words(target.reached)}{where}: "
        f"{VERDICTS[target.verdict]}."
    ]


def _cut_off(judged: JudgedDecisions, result: ValidationResult) -> list[str]:
    cut = judged.cut_off
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
    forests: list[Forest] = []
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
        forests.append(forest(entries, f"{title}: {DIRECTIONS[whole.orientation]}", reference=whole.estimate))
    return forests


def _name(group: SubgroupResult) -> str:
    """The name of a subgroup, marked if it has few cases."""
    return ("⚠ " if group.warnings else "") + f"{group.attribute}: {group.key}"
