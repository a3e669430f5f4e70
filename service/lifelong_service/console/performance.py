"""The pages of performance: the populations, and estimated beside realised performance of one as charts and a table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.performance import ComparedPeriod, EstimatedMetric, PerformanceFields
from lifelong_core.operations.performance import ListPerformance, ShowPerformance
from lifelong_core.store.performance.statements import TITLES, describe_metric
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

if TYPE_CHECKING:
    from lifelong_core.design.report.plots import Dot, Scale, Tick


LIST = "/console/performance"
MOST = 200
"""Populations that are listed."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)

LEFT, RIGHT, TOP, BOTTOM = 44.0, 10.0, 10.0, 24.0
"""Margins of a chart in pixels."""
SIZES = {"wide": (720.0, 240.0), "small": (330.0, 220.0)}
"""Width and height of a chart on wide and on small screens, in pixels."""
_GAP = timedelta(days=1, hours=12)
"""Estimates farther apart than this are not joined by the band."""


@router.get(LIST)
@access(ListPerformance.operation.scope)
def list_populations(request: Request) -> Response:
    """Show the populations whose performance was estimated or counted, with the newest comparison."""
    return page(
        request, "performance_list", listed=carry_out(request, ListPerformance(limit=MOST)), path=LIST
    )


@router.get(LIST + "/{reference}/{environment}")
@access(ShowPerformance.operation.scope)
def show_population(request: Request, reference: str, environment: str) -> Response:
    """Show charts of estimated and realised performance by day, whether they agree, warnings and the numbers."""
    found = carry_out(request, ShowPerformance(model=reference, environment=environment))
    return page(
        request,
        "performance",
        found=found,
        checks=[
            (title, check)
            for title, check in (
                ("Calibration of the probabilities", found.calibration_drift),
                ("Selection of the labelled predictions", found.selection),
            )
            if check is not None
        ],
        charts=charts_of(found),
        rows=rows_of(found),
        left=LEFT,
        right=RIGHT,
        top=TOP,
        describe_metric=describe_metric,
    )


@dataclass(frozen=True)
class Swap:
    """A swap of the head as a mark of the time axis."""

    x: float
    version: int


@dataclass(frozen=True)
class Drawing:
    """One chart at one size; all numbers are pixels."""

    name: str
    width: float
    height: float
    x_ticks: "tuple[Tick, ...]"
    y_ticks: "tuple[Tick, ...]"
    bands: tuple[str, ...]
    """points of the polygons of the estimates' intervals, one for each head version and run of days"""
    lines: tuple[str, ...]
    """points of the lines of the estimates"""
    estimates: "tuple[Dot, ...]"
    realised: "tuple[Dot, ...]"
    swaps: tuple[Swap, ...]

    @property
    def bottom(self) -> float:
        """The time axis."""
        return self.height - BOTTOM


@dataclass(frozen=True)
class Chart:
    """One metric over time."""

    title: str
    description: str
    drawings: tuple[Drawing, ...]


def charts_of(performance: PerformanceFields) -> list[Chart]:
    """A chart of each compared metric that has a value on some day."""
    return [
        Chart(title, _describe(title, performance), drawings)
        for name, title in TITLES.items()
        if (drawings := _drawings(name, performance))
    ]


def rows_of(performance: PerformanceFields) -> list[dict[str, Any]]:
    """The days as rows of a table, newest first."""
    return [
        {
            "day": f"{day.since:%Y-%m-%d}",
            "head": day.head_version,
            "metrics": [_cells(name, day) for name in TITLES],
            "labels": "" if day.realised is None else day.realised.samples,
            "agrees": day.agrees,
        }
        for day in reversed(performance.days)
    ]


def _cells(name: str, day: ComparedPeriod) -> dict[str, str]:
    return {
        "title": TITLES[name].capitalize(),
        "estimated": describe_metric(_estimated(day, name)),
        "realised": describe_metric(_realised(day, name)),
    }


def _describe(title: str, performance: PerformanceFields) -> str:
    days = performance.days
    first, last = days[0].since, days[-1].since
    labelled = sum(day.realised is not None for day in days)
    return (
        f"{title} from {first:%Y-%m-%d} to {last:%Y-%m-%d}: estimates with their intervals, and labelled figures of"
        f" {labelled} days; the table below has the numbers"
    )


def _estimated(day: ComparedPeriod, name: str) -> EstimatedMetric | None:
    return None if day.estimated is None else day.estimated.metrics.get(name)


def _realised(day: ComparedPeriod, name: str) -> EstimatedMetric | None:
    return None if day.realised is None else day.realised.metrics.get(name)


def _drawings(name: str, performance: PerformanceFields) -> tuple[Drawing, ...]:
    from lifelong_core.design.report.plots import pad_range  # loads the design loop

    found = [
        metric
        for day in performance.days
        for metric in (_estimated(day, name), _realised(day, name))
        if metric is not None and metric.value == metric.value
    ]
    if not found:
        return ()
    limits = (0.0, 1.0) if name == "AC" else (float("-inf"), float("inf"))
    values = pad_range((number for metric in found for number in metric), within=limits)
    return tuple(_draw(name, performance, values, style) for style in SIZES)


def _draw(name: str, performance: PerformanceFields, values: tuple[float, float], style: str) -> Drawing:
    from lifelong_core.design.report.plots import Scale, Tick

    (width, height), days = SIZES[style], performance.days
    since, until = min(day.since for day in days), max(day.until for day in days)
    y = Scale(values, (height - BOTTOM, TOP))
    across = Scale((since.timestamp(), until.timestamp()), (LEFT, width - RIGHT))

    def x(at: datetime) -> float:
        return across(at.timestamp())

    labels = sorted({day.since for day in days})
    labels = labels[:: -(-len(labels) // (7 if style == "wide" else 4))]
    runs = list(_runs([day for day in days if _has_interval(_estimated(day, name))]))
    return Drawing(
        style,
        width,
        height,
        x_ticks=tuple(Tick(x(_middle(at, at + timedelta(days=1))), f"{at:%-d %b}") for at in labels),
        y_ticks=y.ticks(5),
        bands=tuple(_band(run, name, x, y) for run in runs if len(run) > 1),
        lines=tuple(_line(run, name, x, y) for run in runs if len(run) > 1),
        estimates=tuple(_dots(days, lambda day: _estimated(day, name), x, y)),
        realised=tuple(_dots(days, lambda day: _realised(day, name), x, y)),
        swaps=tuple(
            Swap(x(swap.at), swap.head_version) for swap in performance.swaps if since <= swap.at < until
        ),
    )


def _has_interval(metric: EstimatedMetric | None) -> bool:
    return metric is not None and all(number == number for number in metric)


def _runs(days: Sequence[ComparedPeriod]) -> Iterator[list[ComparedPeriod]]:
    """Split days with estimates where the head changes or days are missing."""
    by_head = sorted(days, key=lambda day: (day.head_version, day.since))
    run = by_head[:1]
    for before, day in pairwise(by_head):
        if day.head_version != before.head_version or day.since - before.since > _GAP:
            yield run
            run = []
        run.append(day)
    if run:
        yield run


def _points(
    run: Sequence[ComparedPeriod], name: str, x: Callable[[datetime], float], y: "Scale", part: str
) -> list[str]:
    return [f"{_place(day, x)},{y(getattr(_estimated(day, name), part))}" for day in run]


def _band(run: Sequence[ComparedPeriod], name: str, x: Callable[[datetime], float], y: "Scale") -> str:
    lower = _points(run, name, x, y, "low")
    return " ".join([*_points(run, name, x, y, "high"), *reversed(lower)])


def _line(run: Sequence[ComparedPeriod], name: str, x: Callable[[datetime], float], y: "Scale") -> str:
    return " ".join(_points(run, name, x, y, "value"))


def _dots(
    days: Sequence[ComparedPeriod],
    metric_of: Callable[[ComparedPeriod], EstimatedMetric | None],
    x: Callable[[datetime], float],
    y: "Scale",
) -> "Iterator[Dot]":
    from lifelong_core.design.report.plots import Dot

    for day in days:
        metric = metric_of(day)
        if metric is None or metric.value != metric.value:
            continue
        has_interval = _has_interval(metric)
        yield Dot(
            _place(day, x),
            y(metric.value),
            y(metric.low) if has_interval else None,
            y(metric.high) if has_interval else None,
            title=f"{day.since:%Y-%m-%d}, head {day.head_version}: {describe_metric(metric)}",
        )


def _place(day: ComparedPeriod, x: Callable[[datetime], float]) -> float:
    """The middle of the period in which the head answered."""
    return x(_middle(day.since, day.until))


def _middle(since: datetime, until: datetime) -> datetime:
    return since + (until - since) / 2
