"""The page of labels to get: the newest labelling plan of each population, its file, and the form for a new one."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.operations.labelling_plans import (
    ShowPlan,
    WantedPlan,
    labels_to_get,
    plan_labels,
    plan_lines,
    show_plan,
)
from lifelong_core.values.errors import ConflictError, InvalidInputError, LifelongError, NotFoundError
from lifelong_service.console.label_views import plan_view
from lifelong_service.console.pages import page, see_other
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, context_of, worker_of
from lifelong_service.routes.operations import csv_response

PAGE = "/console/labels"
MOST = 100
"""Populations whose newest plan is shown."""
DEFAULT_SIZE = "100"
_FIELDS = ("model", "environment", "size")

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(PAGE)
@access(Scope.READ)
def show_plans(request: Request) -> Response:
    """Show the newest plan of each population and the form for a new one."""
    return _plans_page(request)


@router.get(PAGE + "/{identifier}.csv")
@access(Scope.READ)
def download(request: Request, identifier: UUID) -> Response:
    """The predictions of a plan as a CSV file, to be filled in."""
    context = context_of(request)
    return csv_response(labels_to_get(context, show_plan(context, ShowPlan(plan=identifier))))


@router.post(PAGE)
@access(Scope.OPERATE, media_types=FORM)
def send_plan(request: Request, form: Form) -> Response:
    """Submit the job that makes a plan, and show the job."""
    given = {name: str(form.get(name, "")).strip() for name in _FIELDS}
    try:
        job = plan_labels(context_of(request), WantedPlan.read(given))
    except (InvalidInputError, NotFoundError, ConflictError) as error:
        status = 409 if isinstance(error, ConflictError) else 422
        return _plans_page(request, status=status, error=error, given=given)
    return see_other(f"/console/jobs/{job.id}")


def _plans_page(
    request: Request,
    *,
    status: int = 200,
    error: LifelongError | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    store = worker_of(request).store
    plans = store.labelling_plans.newest_of_each(limit=MOST)
    context: dict[str, Any] = {
        "plans": [plan_view(plan) for plan in plan_lines(store, plans)],
        "models": [model.reference for model in store.models.list() if model.calibration_set_id is not None],
        "environments": store.environments.list(),
        "given": given or {"model": "", "environment": "", "size": DEFAULT_SIZE},
    }
    return page(request, "labels", status=status, error=error, **context)
