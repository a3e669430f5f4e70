"""`/v1/admin/.../labelling-plan`: which predictions to label next."""

from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.store import Store
from lifelong_core.store.labelling.documents import (
    class_names_of,
    plan_csv,
    plan_document,
    plan_documents,
)
from lifelong_core.store.labelling.records import LabellingPlan
from lifelong_core.store.labelling.submission import NewLabellingPlan, submit_labelling_plan
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import NotFoundError
from lifelong_core.values.names import Name
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.jobs import accept_job
from lifelong_service.schemas.labelling import PlanAnswer, PlanLine, PlanList

CSV = "text/csv"

router = APIRouter(route_class=GuardedRoute, tags=["labelling plans"])

_PLAN: dict[int | str, dict[str, Any]] = {
    200: {
        "model": PlanAnswer,
        "description": "JSON, or CSV for a client that accepts text/csv only or names it first.",
        "content": {CSV: {"schema": {"type": "string"}}},
    }
}


class WantedPlan(NewLabellingPlan, RequestDocument):
    """Number of labels wanted; and the window, where it is not to be that of the cycles."""


@router.post(
    "/v1/admin/populations/{reference}/{environment}/labelling-plan",
    status_code=202,
    responses={202: {"model": JobAnswer}},
)
@access(Scope.OPERATE)
def plan_labels(request: Request, reference: str, environment: str, wanted: WantedPlan) -> JSONResponse:
    """Choose which recent predictions to label next, so that `size` labels tell most; the answer is a job.

    A monitor draws them from the newest window: predictions whose cost is uncertain with higher probability, each with
    a known one (`propensity`). Predictions with a label are not drawn. The id of the plan is that of the job.
    """
    store, asked = worker_of(request).store, NewLabellingPlan(**wanted.model_dump())
    return accept_job(submit_labelling_plan(store, reference, environment, asked, actor=actor_of(request)))


@router.get(
    "/v1/admin/populations/{reference}/{environment}/labelling-plan",
    response_class=Response,
    responses=_PLAN,
)
@access(Scope.READ)
def show_newest_plan(request: Request, reference: str, environment: str) -> Response:
    """The newest labelling plan of a population, with the predictions to label in the order in which to label them.

    As CSV (`Accept: text/csv`), it can be sent back by `lifelong feedback import`, with the column `label` filled in.
    """
    store = worker_of(request).store
    model, name = store.models.get(reference), store.environments.get(environment).name
    newest = store.labelling_plans.newest(model.id, name)
    if newest is None:
        raise NotFoundError(
            f"there is no labelling plan for {model.reference} in {name}.",
            field="environment",
            hint="Make one: send POST to the same address, or `lifelong feedback advise`.",
        )
    return _answer(request, store, newest)


@router.get("/v1/admin/labelling-plans")
@access(Scope.READ)
def list_plans(
    request: Request,
    model: str | None = None,
    environment: Name | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> PlanList:
    """The newest labelling plans, newest first, without their predictions."""
    store = worker_of(request).store
    model_id = None if model is None else store.models.get(model).id
    found = store.labelling_plans.list(model_id, environment, limit=limit)
    return {"plans": [cast("PlanLine", document) for document in plan_documents(store, found)]}


@router.get("/v1/admin/labelling-plans/{plan}", response_class=Response, responses=_PLAN)
@access(Scope.READ)
def show_plan(request: Request, plan: UUID) -> Response:
    """One labelling plan with its predictions, as JSON or CSV."""
    store = worker_of(request).store
    return _answer(request, store, store.labelling_plans.get(plan))


def _answer(request: Request, store: Store, plan: LabellingPlan) -> Response:
    accepted = request.headers.get("accept", "").partition(",")[0].partition(";")[0].strip()
    if accepted == CSV:
        return csv_answer(store, plan)
    return JSONResponse(plan_document(store, plan))


def csv_answer(store: Store, plan: LabellingPlan) -> Response:
    """The predictions of a plan as a CSV file to download."""
    return Response(
        plan_csv(store.labelling_plans.chosen(plan.id), class_names_of(store, plan)),
        media_type=CSV,
        headers={"Content-Disposition": f'attachment; filename="labels-to-get-{plan.id}.csv"'},
    )
