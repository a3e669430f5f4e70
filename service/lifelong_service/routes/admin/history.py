"""`/v1/admin/cycles`: past cycles and their proposals."""

from collections.abc import Sequence
from typing import Annotated, cast
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.entities.access import Scope
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.store import Store
from lifelong_core.store.cycles.documents import cycle_document
from lifelong_core.store.cycles.records import Cycle, Outcome
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.names import Name
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.jobs import accept_job
from lifelong_service.schemas.history import CycleAnswer, CycleList

Limit = Annotated[int, Query(ge=1, le=1000)]

router = APIRouter(route_class=GuardedRoute, tags=["history"])


class Rejected(RequestDocument):
    """Reason against a proposed head, 1 to 200 printable characters."""

    reason: str


@router.get("/v1/admin/cycles")
@access(Scope.READ)
def list_cycles(
    request: Request,
    model: str | None = None,
    environment: Name | None = None,
    outcome: Outcome | None = None,
    limit: Limit = 100,
    *,
    open_proposals: bool = False,
) -> CycleList:
    """The newest adaptation cycles, newest first, each with its complete report.

    With `open_proposals` only those whose proposed head can be approved now.
    """
    store = worker_of(request).store
    model_id = store.models.get(model).id if model is not None else None
    if open_proposals:
        cycles = store.cycles.proposals(model_id, environment)[:limit]
    else:
        cycles = store.cycles.list(model_id, environment, limit, outcome=outcome)
    return {"cycles": _cycles(store, cycles)}


@router.get("/v1/admin/cycles/{cycle}")
@access(Scope.READ)
def show_cycle(request: Request, cycle: UUID) -> CycleAnswer:
    """One cycle with its complete report."""
    store = worker_of(request).store
    return _cycles(store, [store.cycles.get(cycle)])[0]


@router.post("/v1/admin/cycles/{cycle}/approve")
@access(Scope.OPERATE)
def approve_cycle(request: Request, cycle: UUID) -> CycleAnswer:
    """Publish exactly the head that a cycle proposed; status 409 names the newer change that prevents it."""
    store = worker_of(request).store
    approved = store.cycles.approve(cycle, actor=actor_of(request))
    return _cycles(store, [approved])[0]


@router.post("/v1/admin/cycles/{cycle}/reject")
@access(Scope.OPERATE)
def reject_cycle(request: Request, cycle: UUID, rejected: Rejected) -> CycleAnswer:
    """Reject the proposal of a cycle; while the present head stays, no cycle proposes nearly the same head again."""
    store = worker_of(request).store
    closed = store.cycles.reject(cycle, reason=rejected.reason, actor=actor_of(request))
    return _cycles(store, [closed])[0]


@router.post("/v1/admin/cycles/{cycle}/replay", status_code=202, responses={202: {"model": JobAnswer}})
@access(Scope.OPERATE)
def replay_cycle(request: Request, cycle: UUID) -> JSONResponse:
    """Run a past cycle again on its window and compare the reports; the answer is a job for a monitor.

    The result of the job has `same`; `tolerance`, 0 for an exact comparison (1e-9 for a window of summaries); and
    `differences`, each field that differs with its `recorded` and its `replayed` value. The job fails if the log no
    longer holds the predictions of that window.
    """
    store = worker_of(request).store
    payload = {"cycle": str(store.cycles.get(cycle).id)}
    return accept_job(store.jobs.submit("replay", payload, actor=actor_of(request)))


def _cycles(store: Store, cycles: Sequence[Cycle]) -> list[CycleAnswer]:
    models = {item.id: item for item in store.models.list()}
    affected = store.swaps.figures([cycle.id for cycle in cycles])
    return [cast("CycleAnswer", cycle_document(cycle, models, affected.get(cycle.id))) for cycle in cycles]
