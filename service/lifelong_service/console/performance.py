"""The pages of performance: the populations, and estimated beside realised performance of one as charts and a table."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.charts.markup import Markup
from lifelong_core.charts.time_series import Mark, Sample, Series, TimeSeries
from lifelong_core.entities.performance import ComparedPeriod, EstimatedMetric, PerformanceFields
from lifelong_core.operations.performance import ListPerformance, ShowPerformance
from lifelong_core.store.performance.statements import TITLES, NotComparedError, describe_metric
from lifelong_service.console.pages import page
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

LIST = "/console/performance"
MOST = 200
"""Populations that are listed."""
_GAP = timedelta(days=1, hours=12)
"""Estimates farther apart than this are not joined by the band."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


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
    try:
        found = carry_out(request, ShowPerformance(model=reference, environment=environment))
    except NotComparedError as error:
        return page(request, "not_compared", model=reference, environment=environment, error=error)
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
        describe_metric=describe_metric,
    )


def charts_of(performance: PerformanceFields) -> list[Markup]:
    """A chart of each compared metric that has a value on some day."""
    return [
        _chart(name, title, performance) for name, title in TITLES.items() if _has_values(name, performance)
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


def _has_values(name: str, performance: PerformanceFields) -> bool:
    metrics = (part(day, name) for day in performance.days for part in (_estimated, _realised))
    return any(metric is not None and metric.value == metric.value for metric in metrics)


def _chart(name: str, title: str, performance: PerformanceFields) -> Markup:
    days = performance.days
    since, until = min(day.since for day in days), max(day.until for day in days)
    estimated = [day for day in days if _estimated(day, name) is not None]
    labelled = [day for day in days if _realised(day, name) is not None]
    return TimeSeries(
        title.capitalize(),
        _describe(title, performance),
        (
            Series(
                "estimate without labels, with its interval",
                tuple(
                    tuple(_samples(run, lambda day: _estimated(day, name), "estimated"))
                    for run in _runs(estimated)
                ),
            ),
            Series(
                "labelled predictions, with interval",
                (tuple(_samples(labelled, lambda day: _realised(day, name), "labelled")),),
                kind="points",
                colour=7,
            ),
        ),
        marks=tuple(
            Mark(swap.at, "swap of the head", f"{swap.head_version}", f"head {swap.head_version}")
            for swap in performance.swaps
        ),
        within=(0.0, 1.0) if name == "AC" else (-math.inf, math.inf),
        span=(since, until),
    ).draw()


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


def _samples(
    days: Sequence[ComparedPeriod], metric_of: Callable[[ComparedPeriod], EstimatedMetric | None], source: str
) -> Iterator[Sample]:
    """The metric of each day, in the middle of the period in which the head answered."""
    for day in days:
        metric = metric_of(day)
        if metric is not None:
            title = f"{day.since:%Y-%m-%d}, head {day.head_version}: {describe_metric(metric)}, {source}"
            yield Sample(day.since + (day.until - day.since) / 2, *metric, title=title)
