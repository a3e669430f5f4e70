"""The page of labels to get: the newest labelling plan of each population, its file, and the form for a new one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.labelling import PlanLine
from lifelong_core.operations.administration.environments import ListEnvironments
from lifelong_core.operations.labelling_plans import (
    ListPlans,
    ShowPlan,
    WantedPlan,
    labels_to_get,
)
from lifelong_core.operations.models import ListModels
from lifelong_core.values.errors import LifelongError
from lifelong_service.console.confirmation import decide
from lifelong_service.console.pages import page
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, carry_out, context_of
from lifelong_service.routes.operations import csv_response

PAGE = "/console/labels"
MOST = 100
"""Populations whose newest plan is shown."""
DEFAULT_SIZE = "100"
_FIELDS = ("model", "environment", "size")

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)

METHODS = {
    "labelled": "With the labels of the plan",
    "labels_alone": "Labels alone",
    "label_free": "Without labels",
}
METRICS = {"EC": "Expected cost", "AC": "Accuracy"}
WIDTHS = {
    "planned": "with the labels of the plan",
    "random": "with as many labels at random",
    "label_free": "without labels (where its assumption holds)",
}
SCALE = 200.0
"""Width of a drawn interval's scale."""


@router.get(PAGE)
@access(Scope.READ)
def show_plans(request: Request) -> Response:
    """Show the newest plan of each population and the form for a new one."""
    return _plans_page(request)


@router.get(PAGE + "/{identifier}.csv")
@access(Scope.READ)
def download(request: Request, identifier: UUID) -> Response:
    """The predictions of a plan as a CSV file, to be filled in."""
    plan = carry_out(request, ShowPlan(plan=identifier))
    return csv_response(labels_to_get(context_of(request), plan))


@router.post(PAGE)
@access(Scope.OPERATE, media_types=FORM)
def send_plan(request: Request, form: Form) -> Response:
    """Submit the job that makes a plan, and show the job."""
    given = {name: str(form.get(name, "")).strip() for name in _FIELDS}

    def refused(error: LifelongError, status: int) -> Response:
        return _plans_page(request, status=status, error=error, given=given)

    return decide(
        request,
        form,
        lambda: WantedPlan.read(given),
        back=PAGE,
        goal=lambda job: f"/console/jobs/{job.id}",
        refused=refused,
    )


def _plans_page(
    request: Request,
    *,
    status: int = 200,
    error: LifelongError | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    models = carry_out(request, ListModels()).models
    context: dict[str, Any] = {
        "plans": [
            plan_view(plan) for plan in carry_out(request, ListPlans(limit=MOST, newest_only=True)).plans
        ],
        "models": [model.model for model in models if model.calibration_set_id is not None],
        "environments": carry_out(request, ListEnvironments()).environments,
        "given": given or {"model": "", "environment": "", "size": DEFAULT_SIZE},
    }
    return page(request, "labels", status=status, error=error, **context)


@dataclass(frozen=True)
class IntervalView:
    """A metric by one method, with its place on the scale that all methods share."""

    method: str
    value: float | None
    low: float | None
    high: float | None
    at: float | None
    """of the value, in 0..SCALE"""
    begin: float | None
    end: float | None

    @property
    def width(self) -> float | None:
        """Of the interval."""
        return None if self.low is None or self.high is None else self.high - self.low


def plan_view(plan: PlanLine) -> dict[str, Any]:
    """A plan for its page."""
    estimate, progress, widths = plan.estimate, plan.progress, plan.expected_widths
    shown = {} if estimate is None else {name: _intervals(estimate, name) for name in METRICS}
    return {
        "plan": plan,
        "path": f"/console/labels/{plan.id}.csv",
        "fraction": progress.labelled / progress.chosen if progress.chosen else 0.0,
        "confidence": widths["confidence"],
        "widths": [(title, widths[name]) for name, title in WIDTHS.items() if widths[name] is not None],
        "metrics": [(METRICS[name], rows) for name, rows in shown.items() if rows],
        "notes": [] if estimate is None else estimate["notes"],
        "used": 0 if estimate is None else estimate["labels"],
    }


def _intervals(estimate: Mapping[str, Any], metric: str) -> list[IntervalView]:
    """The metric by each method that has it."""
    found = {
        title: estimate[name][metric]
        for name, title in METHODS.items()
        if estimate[name] is not None and metric in estimate[name]
    }
    ends = [number for three in found.values() for number in three.values() if number is not None]
    if not ends:
        return []
    least, span = min(ends), max(ends) - min(ends)

    def place(number: float | None) -> float | None:
        if number is None:
            return None
        return SCALE / 2 if span == 0 else 6 + (SCALE - 12) * (number - least) / span

    return [
        IntervalView(
            title,
            **three,
            at=place(three["value"]),
            begin=place(three["low"]),
            end=place(three["high"]),
        )
        for title, three in found.items()
    ]
