"""A validation or a comparison as text for the terminal."""

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from lifelong.rich_console import Console
from lifelong_core.design import (
    AcceptanceOutcome,
    MetricValue,
    ModelComparison,
    ModelRank,
    UncertaintyAwareScores,
    ValidationResult,
)
from lifelong_core.design.report.basis import (
    aggregation_lines,
    cost_line,
    groups_behind,
    rests_on,
    samples_behind,
    samples_text,
)
from lifelong_core.design.report.sections import (
    EXPLANATIONS,
    SCHEMES,
    SCORES,
    decision_lines,
    judged_of,
    leader_lines,
    missing_reasons,
    overall_rankings,
    rows_of_both,
    subgroup_columns,
    subgroup_text,
)
from lifelong_core.design.report.tables import said_once
from lifelong_core.design.report.uncertainty import change_rows, curve_text, uncertainty_source
from lifelong_core.design.report.words import (
    agreement_in_words,
    better,
    calibrated_in_words,
    interval_in_words,
    missing_reason,
    name_classes,
    number,
    of,
    percent,
)
from lifelong_core.metrics import METRICS

MOST_CLASSES = 12
"""Most values of a metric per class that are printed."""

VERDICT = {True: ("reached", "green"), False: ("missed", "red"), None: ("undecided", "yellow")}


def print_validation(console: Console, result: ValidationResult) -> None:
    """Print the metrics with intervals, thresholds, warnings and subgroups."""
    console.print(Text(result.name, style="bold") + Text(f"  {samples_text(result)}", style="dim"))
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    has_reference = any(value.calibrated is not None for value in result.values)
    by_group = result.aggregation == "by_group"
    columns = [
        "metric",
        "of",
        f"value ({100 * result.level:g} % interval)",
        *(["groups"] if by_group else []),
    ]
    for column in [*columns, "better", *(["if perfectly calibrated"] if has_reference else [])]:
        table.add_column(column, overflow="fold", no_wrap=column in columns[2:])
    for label in result.labels:
        for place, value in enumerate(_shown(result, label)):
            basis = rests_on(result, value) if place == 0 else ""
            whose = ", ".join(filter(None, (of(value, result.class_names), basis)))
            groups = [groups_behind(result, value)] if by_group else []
            cells = (label if place == 0 else "", whose, interval_in_words(value), *groups)
            reference = [calibrated_in_words(value) or ""] if has_reference else []
            last = better(value.orientation) if place == 0 else ""
            table.add_row(*(Text(cell) for cell in (*cells, last, *reference)))
    console.print(table)
    console.print(Text(_metric_names(result), style="dim"))
    for line in aggregation_lines(result):
        console.print(Text(line, style="dim"))
    _custom(console, result)
    _calibration_agreement(console, result)
    _decisions(console, result)
    if result.subgroups:
        _subgroups(console, result)
    if result.uncertainty_aware is not None:
        _uncertainty_aware(console, result, result.uncertainty_aware)
    if (cost := cost_line(result)) is not None:
        console.print(Text(cost))
    for outcome in result.acceptance:
        word, colour = VERDICT[outcome.passed]
        why = name_classes(outcome.why, result.class_names)
        judged = Text(f"{word} ", style=f"bold {colour}")
        console.print(judged + Text(f"{_judged(outcome, result.class_names)}: {why}", style="not bold"))
    scored = () if result.uncertainty_aware is None else result.uncertainty_aware.warnings
    cautions = (*_reasons(result), *result.warnings, *scored)
    print_cautions(console, (name_classes(text, result.class_names) for text in cautions))


def _calibration_agreement(console: Console, result: ValidationResult) -> None:
    """Print calibration slope and O:E ratio of each class."""
    found = result.calibration_agreement
    if not found:
        return
    console.print(Text("Calibration slope and O:E ratio, both best at 1:"))
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
    for column in ("class", "slope", "O:E"):
        table.add_column(column, overflow="fold")
    for one in found[:MOST_CLASSES]:
        cells = (
            result.class_names[one.class_index],
            agreement_in_words(one.slope),
            agreement_in_words(one.observed_expected),
        )
        table.add_row(*map(Text, cells))
    console.print(table)
    if len(found) > MOST_CLASSES:
        console.print(Text(f"{len(found) - MOST_CLASSES} more classes are in --json.", style="dim"))


def _decisions(console: Console, result: ValidationResult) -> None:
    """Print which decisions are judged, and the metrics of the likeliest class where it decides otherwise."""
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


def _subgroups(console: Console, result: ValidationResult) -> None:
    """Print the summaries of the metrics by subgroup."""
    for column in subgroup_columns(result):
        whole = result.value(column.label, column.class_index)
        rows = [("all", samples_behind(result, whole), result.samples, whole)]
        rows += [
            (f"{one.attribute}: {one.key}", judged_of(one, column), one.samples, subgroup_text(one, column))
            for one in result.subgroups
        ]
        is_part = any(judged < samples for _, judged, samples, _ in rows)
        console.print()
        shown = _shown(result, column.label)[0] if column.class_index is None else column
        title = f"{column.label}, {of(shown, result.class_names)}, by subgroup"
        console.print(Text(title, style="bold"))
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
        table.add_column("subgroup", overflow="fold")
        table.add_column("judged samples" if is_part else "samples", justify="right")
        table.add_column(f"value ({100 * result.level:g} % interval)", overflow="fold")
        for name, judged, samples, value in rows:
            count = f"{judged:,} of {samples:,}" if is_part else f"{samples:,}"
            table.add_row(Text(name), count, interval_in_words(value))
        console.print(table)
    console.print()


def _uncertainty_aware(console: Console, result: ValidationResult, scores: UncertaintyAwareScores) -> None:
    """Print the uncertainty-aware scores at the first settings, and what sigma and the damping factor change."""
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


def _judged(outcome: AcceptanceOutcome, names: Sequence[str]) -> str:
    """The metric of a threshold, with its class."""
    wanted = outcome.threshold
    return wanted.metric if wanted.class_index is None else f"{wanted.metric} of {names[wanted.class_index]}"


def _custom(console: Console, result: ValidationResult) -> None:
    """Print the metrics of the user, with what they mean."""
    for value in result.custom:
        figure = f"{interval_in_words(value)}, {better(value.orientation)} is better"
        console.print(Text(f"{value.label} (your metric): {figure}. {value.meaning}"))
        for note in (*([f"Not defined: {value.reason}."] if value.reason else []), *value.notes):
            console.print(Text(f"  {note}", style="dim"))


def print_comparison(console: Console, comparison: ModelComparison) -> None:
    """Print the leading model, the rankings by all metrics and by each, then the values of each model."""
    title, why = leader_lines(comparison)
    console.print(Text(title, style="bold") + Text(f". {why}", style="not bold"))
    console.print()
    for overall in overall_rankings(comparison):
        scheme = SCHEMES[overall.scheme]
        console.print(Text(f"{scheme.capitalize()}, by {', '.join(overall.labels)}", style="bold"))
        console.print(Text(EXPLANATIONS[overall.scheme], style="dim"))
        _ranks(console, SCORES[overall.scheme].lower(), overall.models, "no metric counts here")
        for label, left_out in overall.left_out.items():
            console.print(Text(f"  {label} does not count: {left_out}.", style="dim"))
    for ranking in comparison.rankings:
        title = f"By {ranking.label}, {better(ranking.orientation)} is better"
        console.print(Text(title, style="bold"))
        _ranks(console, ranking.basis, ranking.models, ranking.reason)
    names = next(iter(comparison.results.values())).class_names
    print_cautions(console, (name_classes(text, names) for text in comparison.warnings))
    for result in comparison.results.values():
        console.print()
        print_validation(console, result.model_copy(update={"warnings": ()}))


def _metric_names(result: ValidationResult) -> str:
    """The names of the acronyms in the table, in their order."""
    acronyms = dict.fromkeys(value.metric for value in result.values)
    return "; ".join(f"{acronym}: {METRICS[acronym].name}" for acronym in acronyms) + "."


def _shown(result: ValidationResult, label: str) -> list[MetricValue]:
    return _distinct(result, label)[: MOST_CLASSES + 1]


def _distinct(result: ValidationResult, label: str) -> list[MetricValue]:
    """The values of a metric; one where both of two classes have the same."""
    return said_once(value for value in result.values if value.label == label)


def _reasons(result: ValidationResult) -> list[str]:
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
    hidden = sum(len(_distinct(result, label)[MOST_CLASSES + 1 :]) for label in result.labels)
    return [*reasons, *([f"{hidden} values are not shown; --json has them."] if hidden else [])]


def _ranks(console: Console, score: str, models: Iterable[ModelRank], reason: str | None) -> None:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
    for column in ("place", "model", score, "place in resamples (interval)", "best in"):
        table.add_column(column, overflow="fold")
    for model in models:
        places = f"{model.mean_rank:.2f} ({model.low:g} to {model.high:g})"
        cells = (f"{model.rank:g}", model.model, number(model.score), places, percent(model.best))
        table.add_row(*(Text(cell) for cell in cells))
    if table.row_count:
        console.print(table)
    else:
        console.print(Text(f"  {reason}"))


def print_cautions(console: Console, warnings: Iterable[str]) -> None:
    """Print warnings, each as a sentence of its own."""
    for warning in warnings:
        console.print(Text(f"Caution: {warning}", style="yellow"))
