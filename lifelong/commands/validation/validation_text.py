"""A validation or a comparison as text for the terminal."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lifelong_core.design.report.decisions import decision_lines, rows_of_both
from lifelong_core.design.report.subgroups import missing_reasons, subgroup_columns, subgroup_text
from lifelong_core.design.report.uncertainty import change_rows, curve_text, uncertainty_source
from lifelong_core.design.report.words import (
    better,
    calibrated_in_words,
    interval_in_words,
    missing_reason,
    name_classes,
    number,
    of,
    percent,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lifelong_core.design import (
        AcceptanceOutcome,
        MetricValue,
        ModelComparison,
        ModelRank,
        UncertaintyAwareScores,
        ValidationResult,
    )

MOST_CLASSES = 12
"""Most values of a metric per class that are printed."""

VERDICT = {True: ("reached", "green"), False: ("missed", "red"), None: ("undecided", "yellow")}


def print_validation(console: "Console", result: "ValidationResult") -> None:
    """Print the metrics with intervals, thresholds, warnings and subgroups."""
    from rich.table import Table
    from rich.text import Text

    what = f"{result.samples:,} samples" + (f" of {result.cases:,} groups" if result.groups else "")
    what += "; each metric is a mean over groups" if result.aggregation == "by_group" else ""
    console.print(Text(result.name, style="bold") + Text(f"  {what}", style="dim"))
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    has_reference = any(value.calibrated is not None for value in result.values)
    columns = ["metric", "of", f"value ({100 * result.level:g} % interval)", "better"]
    for column in [*columns, *(["if perfectly calibrated"] if has_reference else [])]:
        table.add_column(column, overflow="fold")
    for label in result.labels:
        for value in _shown(result, label):
            summing_up = value is result.value(label)
            cells = (label if summing_up else "", of(value, result.class_names), interval_in_words(value))
            reference = [calibrated_in_words(value) or ""] if has_reference else []
            last = better(value.orientation) if summing_up else ""
            table.add_row(*(Text(cell) for cell in (*cells, last, *reference)))
    console.print(table)
    _custom(console, result)
    _decisions(console, result)
    if result.subgroups:
        _subgroups(console, result)
    if result.uncertainty_aware is not None:
        _uncertainty_aware(console, result, result.uncertainty_aware)
    adjusted = result.adjusted_expected_cost
    if adjusted is not None:
        said = interval_in_words(adjusted.adjusted)
        console.print(Text(f"At the class shares of use a decision costs {said} on average."))
    for outcome in result.acceptance:
        word, colour = VERDICT[outcome.passed]
        why = name_classes(outcome.why, result.class_names)
        judged = Text(f"{word} ", style=f"bold {colour}")
        console.print(judged + Text(f"{_judged(outcome, result.class_names)}: {why}", style="not bold"))
    scored = () if result.uncertainty_aware is None else result.uncertainty_aware.warnings
    cautions = (*_reasons(result), *result.warnings, *scored)
    print_cautions(console, (name_classes(text, result.class_names) for text in cautions))


def _decisions(console: "Console", result: "ValidationResult") -> None:
    """Print which decisions are judged, and the metrics of the likeliest class where it decides otherwise."""
    from rich.table import Table
    from rich.text import Text

    for line in decision_lines(result):
        console.print(Text(line))
    rows = rows_of_both(result)
    if not rows:
        return
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
    for column in ("metric", "of", "judged decisions", "likeliest class"):
        table.add_column(column, overflow="fold")
    for row in rows[: MOST_CLASSES + 1]:
        table.add_row(*map(Text, (row.label, row.of, row.judged, row.by_likeliest)))
    console.print(table)
    if len(rows) > MOST_CLASSES + 1:
        console.print(Text(f"{len(rows) - MOST_CLASSES - 1} more rows are in --json.", style="dim"))


def _subgroups(console: "Console", result: "ValidationResult") -> None:
    """Print the summaries of the metrics by subgroup."""
    from rich.table import Table
    from rich.text import Text

    for column in subgroup_columns(result):
        whole = result.value(column.label, column.class_index)
        rows = [("all", result.samples, whole)]
        rows += [
            (f"{one.attribute}: {one.key}", one.samples, subgroup_text(one, column))
            for one in result.subgroups
        ]
        console.print()
        title = f"{column.label}, {of(column, result.class_names)}, by subgroup"
        console.print(Text(title, style="bold"))
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
        table.add_column("subgroup", overflow="fold")
        table.add_column("samples", justify="right")
        table.add_column(f"value ({100 * result.level:g} % interval)", overflow="fold")
        for name, samples, value in rows:
            table.add_row(Text(name), f"{samples:,}", interval_in_words(value))
        console.print(table)
    console.print()


def _uncertainty_aware(
    console: "Console", result: "ValidationResult", scores: "UncertaintyAwareScores"
) -> None:
    """Print the uncertainty-aware scores at the first settings, and what sigma and the damping factor change."""
    from rich.table import Table
    from rich.text import Text

    name = result.class_names[scores.positive_class]
    console.print()
    console.print(Text(f"Uncertainty-aware scores of {name}, threshold {scores.threshold:g}", style="bold"))
    console.print(Text(uncertainty_source(scores), style="dim"))
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("score", "setting", f"value ({100 * result.level:g} % interval)", "better"):
        table.add_column(column, overflow="fold")
    for metric in scores.metrics:
        usual = scores.curve(metric, scores.dampings[0])
        setting = f"sigma = {scores.sigmas[0]:g}, d = {scores.dampings[0]:g}"
        table.add_row(*map(Text, (metric, setting, curve_text(usual, 0), better(usual.orientation))))
        for row in change_rows(scores):
            if row.metric == metric:
                table.add_row(*map(Text, ("", row.what, row.text, row.conclusion.partition(":")[0])))
    console.print(table)
    console.print(
        Text("d: damping factor. All settings are in --json, and in the report (--html) with plots.")
    )
    console.print()


def _judged(outcome: "AcceptanceOutcome", names: Sequence[str]) -> str:
    """The metric of a threshold, with its class."""
    wanted = outcome.threshold
    return wanted.metric if wanted.class_index is None else f"{wanted.metric} of {names[wanted.class_index]}"


def _custom(console: "Console", result: "ValidationResult") -> None:
    """Print the metrics of the user, with what they mean."""
    from rich.text import Text

    for value in result.custom:
        figure = f"{interval_in_words(value)}, {better(value.orientation)} is better"
        console.print(Text(f"{value.label} (your metric): {figure}. {value.meaning}"))
        for note in (*([f"Not defined: {value.reason}."] if value.reason else []), *value.notes):
            console.print(Text(f"  {note}", style="dim"))


def print_comparison(console: "Console", comparison: "ModelComparison") -> None:
    """Print the ranking of the models by each metric and by all together."""
    from rich.text import Text

    for result in comparison.results.values():
        print_validation(console, result.model_copy(update={"warnings": ()}))
        console.print()
    headline = comparison.headline
    if headline is not None and headline.label is not None:
        console.print(
            Text(f"{headline.why} The ranking by {headline.label} answers the question.", style="bold")
        )
    for ranking in comparison.rankings:
        title = f"By {ranking.label}, {better(ranking.orientation)} is better"
        _ranks(console, title, ranking.basis, ranking.models, ranking.reason)
    schemes = {"rank_then_mean": "mean rank", "mean_then_rank": "mean value"}
    for overall in (comparison.rank_then_mean, comparison.mean_then_rank):
        title = f"By all of {', '.join(overall.labels)}, by {schemes[overall.scheme]}"
        _ranks(console, title, schemes[overall.scheme], overall.models, "no metric counts here")
        for label, why in overall.left_out.items():
            console.print(Text(f"  {label} does not count: {why}.", style="dim"))
    names = next(iter(comparison.results.values())).class_names
    print_cautions(console, (name_classes(text, names) for text in comparison.warnings))


def _shown(result: "ValidationResult", label: str) -> "list[MetricValue]":
    return [value for value in result.values if value.label == label][: MOST_CLASSES + 1]


def _reasons(result: "ValidationResult") -> list[str]:
    """Reasons for missing values and intervals, warnings of subgroups, and the number of values not printed."""
    reasons = [
        f"{value.label} of {of(value, result.class_names)}{reason}"
        for label in result.labels
        for value in _shown(result, label)
        if (reason := missing_reason(value)) is not None
    ]
    for group in result.subgroups:
        found = [*group.warnings, *missing_reasons(group, subgroup_columns(result))]
        reasons += (
            [f"{group.attribute} {group.key}: {'; '.join(text.rstrip('.') for text in found)}."]
            if found
            else []
        )
    hidden = len(result.values) - sum(len(_shown(result, label)) for label in result.labels)
    return [*reasons, *([f"{hidden} values are not shown; --json has them."] if hidden else [])]


def _ranks(
    console: "Console", title: str, score: str, models: "Iterable[ModelRank]", reason: str | None
) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(Text(title, style="bold"))
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
    for column in ("place", "model", score, "place (interval)", "best in"):
        table.add_column(column, overflow="fold")
    for model in models:
        places = f"{model.mean_rank:.2f} ({model.low:g} to {model.high:g})"
        cells = (f"{model.rank:g}", model.model, number(model.score), places, percent(model.best))
        table.add_row(*(Text(cell) for cell in cells))
    if table.row_count:
        console.print(table)
    else:
        console.print(Text(f"  {reason}"))


def print_cautions(console: "Console", warnings: Iterable[str]) -> None:
    """Print warnings, each as a sentence of its own."""
    from rich.text import Text

    for warning in warnings:
        console.print(Text(f"Caution: {warning}", style="yellow"))
