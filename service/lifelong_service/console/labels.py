"""The page of labels to get: the newest labelling plan of each population, its file, and the form for a new one."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.store.labelling.documents import plan_documents
from lifelong_core.store.labelling.submission import NewLabellingPlan, submit_labelling_plan
from lifelong_core.values.errors import ConflictError, InvalidInputError, LifelongError, NotFoundError
from lifelong_core.values.validation_errors import as_input_error
from lifelong_service.console.label_views import plan_view
from lifelong_service.console.pages import page, see_other
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.routes.admin.labelling_plans import csv_answer

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
    store = worker_of(request).store
    return csv_answer(store, store.labelling_plans.get(identifier))


@router.post(PAGE)
@access(Scope.OPERATE, media_types=FORM)
def plan_labels(request: Request, form: Form) -> Response:
    """Submit the job that makes a plan, and show the job."""
    given = {name: str(form.get(name, "")).strip() for name in _FIELDS}
    try:
        job = submit_labelling_plan(
            worker_of(request).store,
            given["model"],
            given["environment"],
            _asked(given["size"]),
            actor=actor_of(request),
        )
    except (InvalidInputError, NotFoundError, ConflictError) as error:
        status = 409 if isinstance(error, ConflictError) else 422
        return _plans_page(request, status=status, error=error, given=given)
    return see_other(f"/console/jobs/{job.id}")


def _asked(size: str) -> NewLabellingPlan:
    try:
        return NewLabellingPlan.model_validate({"size": size})
    except ValidationError as error:
        raise as_input_error(error, NewLabellingPlan) from error


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
        "plans": [
            plan_view(plan, document)
            for plan, document in zip(plans, plan_documents(store, plans), strict=True)
        ],
        "models": [model.reference for model in store.models.list() if model.calibration_set_id is not None],
        "environments": store.environments.list(),
        "given": given or {"model": "", "environment": "", "size": DEFAULT_SIZE},
    }
    return page(request, "labels", status=status, error=error, **context)
