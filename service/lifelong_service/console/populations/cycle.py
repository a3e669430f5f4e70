"""The page of one cycle: what it saw, what it concluded, and why it did or did not swap."""

import json
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.charts.bars import Bar, Bars
from lifelong_core.charts.markup import Markup
from lifelong_core.deploy import AdaptationReport
from lifelong_core.deploy.head import ABSTAIN
from lifelong_core.operations.cycles import ReplayCycle, ShowCycle
from lifelong_core.operations.models import ShowModel
from lifelong_core.store.cycles.statements import (
    describe_affected,
    describe_assumption,
    describe_changes,
    describe_consequences,
    describe_criteria,
    describe_estimate,
    describe_gains,
    describe_method,
    name_metric,
    readable_report,
)
from lifelong_core.values.errors import LifelongError
from lifelong_service.console.confirmation import decide
from lifelong_service.console.pages import page
from lifelong_service.console.populations.population import TONES
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, carry_out

PATH = "/console/cycles/{identifier}"
MOST_CLASSES = 8
"""Classes in the chart: those whose estimate is farthest from the assumed share."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(PATH)
@access(ShowCycle.operation.scope)
def show_cycle(request: Request, identifier: UUID) -> Response:
    """Show what the cycle saw, concluded and changed."""
    return _cycle_page(request, identifier)


@router.get(PATH + "/cycle.json")
@access(ShowCycle.operation.scope)
def show_document(request: Request, identifier: UUID) -> Response:
    """The cycle with its whole report, as the API answers it."""
    cycle = carry_out(request, ShowCycle(cycle=str(identifier)))
    headers = {"Content-Disposition": f'attachment; filename="cycle-{identifier}.json"'}
    return Response(json.dumps(cycle.to_document(), indent=1), media_type="application/json", headers=headers)


@router.post(PATH + "/replay")
@access(ReplayCycle.operation.scope, media_types=FORM)
def replay(request: Request, identifier: UUID, form: Form) -> Response:
    """Submit a job that runs the cycle again and compares the reports."""

    def refused(error: LifelongError, status: int) -> Response:
        return _cycle_page(request, identifier, status=status, error=error)

    return decide(
        request,
        form,
        lambda: ReplayCycle(cycle=str(identifier)),
        back=f"/console/cycles/{identifier}",
        goal=lambda job: f"/console/jobs/{job.id}",
        refused=refused,
    )


def _cycle_page(
    request: Request, identifier: UUID, *, status: int = 200, error: LifelongError | None = None
) -> Response:
    cycle = carry_out(request, ShowCycle(cycle=str(identifier)))
    names = carry_out(request, ShowModel(model=cycle.model)).classes
    report = readable_report(cycle)
    affected = cycle.affected
    return page(
        request,
        "cycle",
        status=status,
        error=error,
        cycle=cycle,
        tone=TONES.get(cycle.effect, "calm"),
        reasons=[reason["text"] for reason in cycle.report.get("reasons", [])],
        clocks=(cycle.report.get("inputs") or {}).get("clocks", ()),
        consequences=describe_consequences(cycle),
        affected=None if affected is None else describe_affected(affected, cycle.published_version),
        changes=[] if affected is None else describe_changes(affected, (*names, ABSTAIN)),
        **({"report": None} if report is None else _report_views(report, names)),
    )


def _report_views(report: AdaptationReport, names: list[str]) -> dict[str, Any]:
    """The parts of a report in words, tables and a chart."""
    current, candidate = report.performance, report.candidate_performance
    return {
        "report": report,
        "chart": _chart(report, names),
        "shares": _shares(report, names),
        "conclusions": [
            *describe_assumption(report.assumption_test),
            *describe_gains(report),
            *describe_criteria(report),
        ],
        "metrics": []
        if current is None
        else [
            (
                name_metric(key, names),
                describe_estimate(key, current),
                None if candidate is None else describe_estimate(key, candidate),
            )
            for key in current.estimates
        ],
        "method": None if current is None else describe_method(current),
        "warnings": []
        if current is None
        else list(dict.fromkeys(one.text for of in (current, candidate) if of for one in of.warnings)),
    }


def _shares(report: AdaptationReport, names: list[str]) -> list[tuple[str, float, float, float, float]]:
    """Name, assumed share, estimate, lower and upper bound of each class, the largest differences first."""
    estimate = report.prevalence
    if estimate is None:
        return []
    numbers = (
        array.tolist()
        for array in (report.assumed_prevalence, estimate.prevalence, estimate.low, estimate.high)
    )
    return sorted(zip(names, *numbers, strict=True), key=lambda row: abs(row[1] - row[2]), reverse=True)


def _chart(report: AdaptationReport, names: list[str]) -> Markup | None:
    """The assumed and the estimated share of each class as bars."""
    shares = _shares(report, names)[:MOST_CLASSES]
    if not shares:
        return None
    bars = [
        bar
        for name, assumed, value, low, high in shares
        for bar in (
            Bar(name, value, low, high, f"{name}: {value:.3f} ({low:.3f} to {high:.3f})"),
            Bar("assumed", assumed, title=f"{name}, assumed: {assumed:.3f}", tone="calm"),
        )
    ]
    told = "; ".join(
        f"{name}: assumed {assumed:.2f}, estimated {value:.2f}" for name, assumed, value, *_ in shares
    )
    return Bars("Prevalence in its window", f"{told}.", tuple(bars), within=(0.0, 1.0)).draw()
