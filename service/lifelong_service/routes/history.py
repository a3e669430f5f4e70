"""`/v1/admin/environments`, `/cycles` and `/audit`: what there is and what happened, and what waits for approval."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.requests import Request

from lifelong_core.store.records import Scope
from lifelong_service.documents import audit_document, cycle_document
from lifelong_service.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.schemas.history import AuditList, CycleAnswer, CycleList, EnvironmentList
from lifelong_service.schemas.requests import RequestDocument

Limit = Annotated[int, Query(ge=1, le=1000)]

router = APIRouter(route_class=GuardedRoute, tags=["history"])


class Rejected(RequestDocument):
    """Why a proposed head must not come in force, 1 to 200 printable characters."""

    reason: str


@router.get("/v1/admin/environments")
@access(Scope.READ)
def list_environments(request: Request) -> EnvironmentList:
    """All environments."""
    return {"environments": sorted(worker_of(request).store.environments.list())}


@router.get("/v1/admin/cycles")
@access(Scope.READ)
def list_cycles(
    request: Request,
    model: str | None = None,
    environment: str | None = None,
    limit: Limit = 100,
    *,
    open_proposals: bool = False,
) -> CycleList:
    """The newest cycles of the workflow, newest first, each with its whole report; with `open_proposals` only those
    whose proposed head can be approved now."""
    store = worker_of(request).store
    model_id = store.models.get(model).id if model is not None else None
    if open_proposals:
        cycles = store.cycles.proposals(model_id, environment)[:limit]
    else:
        cycles = store.cycles.list(model_id=model_id, environment=environment, limit=limit)
    models = {item.id: item for item in store.models.list()}
    return {"cycles": [cycle_document(cycle, models) for cycle in cycles]}


@router.get("/v1/admin/cycles/{cycle}")
@access(Scope.READ)
def show_cycle(request: Request, cycle: UUID) -> CycleAnswer:
    """One cycle with its whole report."""
    store = worker_of(request).store
    return cycle_document(store.cycles.get(cycle), {item.id: item for item in store.models.list()})


@router.post("/v1/admin/cycles/{cycle}/approve")
@access(Scope.OPERATE)
def approve_cycle(request: Request, cycle: UUID) -> CycleAnswer:
    """Publish exactly the head that a cycle proposed; 409 says what overtook it."""
    store = worker_of(request).store
    approved = store.cycles.approve(cycle, actor=actor_of(request))
    return cycle_document(approved, {item.id: item for item in store.models.list()})


@router.post("/v1/admin/cycles/{cycle}/reject")
@access(Scope.OPERATE)
def reject_cycle(request: Request, cycle: UUID, rejected: Rejected) -> CycleAnswer:
    """Close what a cycle proposed; while the present head stays, no cycle proposes practically the same again."""
    store = worker_of(request).store
    closed = store.cycles.reject(cycle, reason=rejected.reason, actor=actor_of(request))
    return cycle_document(closed, {item.id: item for item in store.models.list()})


@router.get("/v1/admin/audit")
@access(Scope.READ)
def list_audit(
    request: Request, limit: Limit = 100, before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> AuditList:
    """The newest changes, newest first; `before` is the id at which the last page ended."""
    entries = worker_of(request).store.audit.list(limit=limit, before=before)
    return {"audit": [audit_document(entry) for entry in entries]}
