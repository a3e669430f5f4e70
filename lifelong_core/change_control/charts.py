"""The charts of the periodic report."""

from collections.abc import Iterator

from lifelong_core.charts.bars import Bar, Bars
from lifelong_core.charts.markup import Markup
from lifelong_core.charts.time_series import Mark, Sample, Series, TimeSeries
from lifelong_core.entities.change_control import HeadChange, PeriodReport
from lifelong_core.entities.populations import JudgedWindow

MOST_CLASSES = 12
"""Classes with a chart of their own: those whose share moved most."""
TITLES = {"AC": "Accuracy", "EC": "Expected cost of a decision"}


def prevalence_charts(report: PeriodReport) -> list[Markup]:
    """A chart of each class: the estimate with its band, and what the head assumed."""
    windows = [window for window in report.windows if window.prevalence is not None]
    if not windows:
        return []
    classes = sorted(range(len(report.class_names)), key=lambda place: -_range(windows, place))[:MOST_CLASSES]
    return [_prevalence(report, windows, place) for place in sorted(classes)]


def performance_charts(report: PeriodReport) -> list[Markup]:
    """A chart of each metric that cycles estimated: by day, with its interval."""
    return [
        _performance(report, name, title)
        for name, title in TITLES.items()
        if any(name in day.metrics for day in report.estimated)
    ]


def decision_chart(names: list[str], numbers: list[int]) -> Markup:
    """Bars of the number of decisions by class."""
    total = max(sum(numbers), 1)
    bars = tuple(
        Bar(name, float(number), title=f"{name}: {number:,} ({number / total:.1%})")
        for name, number in zip(names, numbers, strict=True)
    )
    text = ", ".join(f"{name} {number:,}" for name, number in zip(names, numbers, strict=True))
    return Bars("Decisions", f"Number of decisions: {text}", bars).draw()


def _range(windows: list[JudgedWindow], place: int) -> float:
    shares = [window.prevalence[0][place] for window in windows if window.prevalence]
    return max(shares) - min(shares)


def _prevalence(report: PeriodReport, windows: list[JudgedWindow], place: int) -> Markup:
    name = report.class_names[place]
    estimates = tuple(
        Sample(window.judged_at, value[place], low[place], high[place])
        for window in windows
        for value, low, high in [window.prevalence or []]
    )
    assumed = tuple(
        Sample(window.judged_at, window.assumed_prevalence[place])
        for window in windows
        if place < len(window.assumed_prevalence)
    )
    return TimeSeries(
        f"Prevalence of {name}",
        f"Estimated prevalence of {name}: {estimates[0].value:.3f} at first, {estimates[-1].value:.3f} at last.",
        (
            Series("estimated without labels, with its interval", (estimates,)),
            Series("assumed by the head", (assumed,), kind="step", colour=1),
        ),
        marks=tuple(_marks(report.changes)),
        within=(0.0, 1.0),
        span=(report.since, report.until),
    ).draw()


def _performance(report: PeriodReport, name: str, title: str) -> Markup:
    by_head: dict[int, list[Sample]] = {}
    for day in report.estimated:
        if (metric := day.metrics.get(name)) is not None:
            by_head.setdefault(day.head_version, []).append(
                Sample(day.day, metric.value, metric.low, metric.high, f"head {day.head_version}")
            )
    samples = [sample for pieces in by_head.values() for sample in pieces]
    return TimeSeries(
        title,
        f"{title}, estimated without labels: {samples[0].value:.3f} at first, {samples[-1].value:.3f} at last.",
        (Series("estimated without labels, with its interval", tuple(map(tuple, by_head.values()))),),
        marks=tuple(_marks(report.changes)),
        within=(0.0, 1.0) if name == "AC" else (float("-inf"), float("inf")),
        span=(report.since, report.until),
    ).draw()


def _marks(changes: list[HeadChange]) -> Iterator[Mark]:
    return (
        Mark(
            change.at, "change of the head", str(change.head_version), f"head {change.head_version}", "accent"
        )
        for change in changes
    )
