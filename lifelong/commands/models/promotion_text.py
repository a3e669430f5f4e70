"""A promotion report as text for the terminal."""

from rich.table import Table
from rich.text import Text

from lifelong.commands.validation.validation_text import MOST_CLASSES, print_cautions
from lifelong.rich_console import Console
from lifelong_core.design.interview.class_names import decision_names
from lifelong_core.design.report.words import better, interval_in_words, name_classes, number, of
from lifelong_core.design.validation.differences import MetricDifference
from lifelong_core.metrics.catalogue import METRICS
from lifelong_core.promotion import PromotionReport

_COLOURS = {"promote": "green", "reject": "red", "decide": "yellow"}
_MOST_CASES = 5


def print_promotion(console: Console, report: PromotionReport) -> None:
    """Print the verdict with its reasons, the differences, the costliest changes of decisions, and warnings."""
    names = report.new_result.class_names
    pair = Text(report.new.reference, style="bold") + Text(f" against {report.current.reference}")
    console.print(pair + Text(f"  {report.changes.samples:,} cases of {report.task}", style="dim"))
    console.print(Text(report.verdict.headline, style=f"bold {_COLOURS[report.verdict.advice]}"))
    for reason in report.verdict.reasons:
        console.print(Text(f"- {name_classes(reason, names)}", style="not bold"))
    console.print()
    _print_differences(console, report)
    _print_changes(console, report)
    for text in report.verdict.unknown:
        console.print(Text(f"Not known: {text}", style="dim"))
    print_cautions(console, (name_classes(text, names) for text in report.warnings))


def _print_differences(console: Console, report: PromotionReport) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    level = f"difference ({100 * report.new_result.level:g} % interval)"
    for column in ("metric", "of", "new", "current", level, "verdict", "better"):
        table.add_column(column, overflow="fold")
    rows: list[tuple[str, MetricDifference]] = [
        (of(one, report.new_result.class_names), one) for one in _shown(report.differences)
    ]
    environments = [one for one in report.costs if one.environment is not None]
    if all(one.label != report.costs[0].difference.label for _, one in rows):
        environments.insert(0, report.costs[0])
    rows += [(one.environment or "these cases", one.difference) for one in environments]
    rows += [("all classes", one) for one in report.calibration]
    for what, one in rows:
        values = (number(one.value("new")), number(one.value("current")))
        cells = (one.label, what, *values, interval_in_words(one), one.direction)
        table.add_row(*(Text(cell) for cell in (*cells, better(one.orientation))))
    console.print(table)
    spelled = {one.label: METRICS[one.label].name for _, one in rows if one.label in METRICS}
    console.print(Text("; ".join(f"{label}: {name}" for label, name in spelled.items()), style="dim"))
    console.print()


def _shown(differences: tuple[MetricDifference, ...]) -> list[MetricDifference]:
    """Of each metric, what sums it up and the first classes."""
    by_label: dict[str, list[MetricDifference]] = {}
    for one in differences:
        by_label.setdefault(one.label, []).append(one)
    return [one for own in by_label.values() for one in own[: MOST_CLASSES + 1]]


def _print_changes(console: Console, report: PromotionReport) -> None:
    changes, names = report.changes, report.new_result.class_names
    decisions = decision_names(names, len(report.cost_matrix[0]))
    console.print(Text(f"{changes.changed} of {changes.samples} decisions change.", style="bold"))
    for one in changes.worse[:_MOST_CASES]:
        name = f"row {one.row}" if one.name is None else one.name
        console.print(
            Text(
                f"  {name}: {names[one.class_index]}, decided {decisions[one.current]} before and"
                f" {decisions[one.new]} now, cost {one.cost_change:+g}",
                style="not bold",
            )
        )
    console.print()
