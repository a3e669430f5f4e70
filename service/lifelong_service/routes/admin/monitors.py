"""`/v1/admin/monitors`: monitors, and the newest visit of each population."""

from fastapi import APIRouter
from starlette.requests import Request

from lifelong_core.store.access.records import Scope
from lifelong_service.documents.registry import monitor_document
from lifelong_service.http.guard import GuardedRoute, access, worker_of
from lifelong_service.schemas.history import MonitorList

router = APIRouter(route_class=GuardedRoute, tags=["operations"])


@router.get("/v1/admin/monitors")
@access(Scope.READ)
def list_monitors(request: Request) -> MonitorList:
    """The monitors of all machines by their heartbeats of the last day, newest first.

    A population counts as watched (`watched_at`) when a cycle judged it or a visit found nothing new.
    """
    store = worker_of(request).store
    models = {model.id: model for model in store.models.list()}
    return {"monitors": [monitor_document(one, models) for one in store.monitors.list()]}
