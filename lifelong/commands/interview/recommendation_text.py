"""A recommendation as text for the terminal."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from lifelong.rich_console import Console
from lifelong_core.design import Recommendation, Step
from lifelong_core.design.recommendation.document import GuideOutcome
from lifelong_core.design.recommendation.wording import (
    CONFIDENCE_WORDS,
    DECIDED_BY,
    DISPLAY_NAMES,
    MetricView,
    view_metrics,
)


def print_recommendation(
    console: Console, recommendation: Recommendation, class_names: Sequence[str] | None
) -> None:
    """Print the metrics with reasons, rejected metrics, warnings and advice."""
    metrics = view_metrics(recommendation, class_names)
    console.print()
    console.rule("Recommended metrics", align="left", style="bold")
    _metrics(console, metrics)
    for step in recommendation.steps:
        _step(console, step)
    _list(
        console,
        "Similar information",
        (f"{' and '.join(w.metrics)}: {w.statement}" for w in recommendation.warnings),
    )
    _list(console, "How to apply them", (advice.advice for advice in recommendation.advice))
    shown = (DISPLAY_NAMES[display] for display in recommendation.displays)
    _list(console, "Show beside them", shown)
    _list(console, "Unused answers", (item.item for item in recommendation.unused))
    labels = ", ".join(view.label for view in metrics)
    console.print()
    console.print(Text("In short: ", style="bold") + Text(labels or "no metric", style="bold green"))


def _metrics(console: Console, metrics: Sequence[MetricView]) -> None:
    """Print one row for each metric: its meaning and its parameters."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("metric", no_wrap=True)
    table.add_column("what it says", overflow="fold")
    for view in metrics:
        facts = ". ".join([view.direction.capitalize(), *_details(view)])
        name = Text(f"{view.card.name}. ", style="bold")
        table.add_row(
            Text(view.label, style="bold green"),
            name + Text(f"{view.card.meaning} {facts}.", style="not bold"),
        )
    console.print(table)


def _details(view: MetricView) -> Iterator[str]:
    """The class, the costs, the prevalences and the weights with which a metric is computed."""
    metric = view.metric
    parameters = dict(metric.parameters)
    if view.target_class_name is not None:
        yield f"For {view.target_class_name}"
    elif metric.per_class:
        yield "For each class"
    if "costs" in parameters:
        yield f"Costs {_rows(parameters['costs'])}"
    if "prevalence" in parameters:
        yield f"At the class shares {_rows([parameters['prevalence']])}"
    elif metric.metric in ("EC", "NEC"):
        yield "At the class shares of the test data"
    if metric.class_weights is not None:
        yield f"Weights of the classes {_rows([metric.class_weights])}"


def _rows(matrix: object) -> str:
    rows: Sequence[Sequence[float]] = matrix  # type: ignore[assignment]
    return "; ".join(", ".join(f"{value:g}" for value in row) for row in rows)


def _step(console: Console, step: Step) -> None:
    """Print the recommended and rejected metrics of one subprocess, with reasons."""
    labels = ", ".join(metric.label for metric in step.metrics)
    console.print()
    title = step.title[0].upper() + step.title[1:]
    console.print(Text(f"{title}: ", style="bold") + Text(labels or "none", style="green" if labels else ""))
    if step.metrics or step.guides or step.action is not None:
        because = "; ".join(f"{entry.name}: {entry.label}" for entry in step.path)
        _line(console, "because", f"{because}.")
        _line(console, "how sure", f"{CONFIDENCE_WORDS[step.confidence]} ({step.source})")
    for note in step.notes:
        _line(console, "note", note)
    for guide in step.guides:
        _line(console, guide.guide, _decision(guide))
    for metrics, reason in _rejections(step):
        _line(console, "left out", f"{metrics}: {reason}")


def _decision(guide: GuideOutcome) -> str:
    chosen = ", ".join(guide.chosen) or f"one of {', '.join(guide.options)}"
    return f"{guide.title}: {chosen}, {DECIDED_BY[guide.decided_by]}. {guide.why}"


def _rejections(step: Step) -> Iterator[tuple[str, str]]:
    """The rejected metrics, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for rejected in step.rejected:
        guide = next((item.guide for item in step.guides if rejected.reason.startswith(item.guide)), None)
        reason = rejected.reason if guide is None else f"see {guide} above."
        reasons.setdefault(reason, []).append(rejected.metric)
    for reason, metrics in reasons.items():
        yield ", ".join(metrics), reason


def _list(console: Console, title: str, items: Iterator[str]) -> None:
    lines = list(items)
    if not lines:
        return
    console.print()
    console.print(Text(title, style="bold"))
    for line in lines:
        _line(console, "-", line)


def _line(console: Console, label: str, text: str) -> None:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(min_width=2 if label == "-" else 10)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"  {label}", style="dim"), Text(text))
    console.print(grid)
