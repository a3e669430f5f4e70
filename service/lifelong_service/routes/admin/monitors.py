"""`/v1/admin/monitors`: monitors, and the latest visit to each population."""

from fastapi import APIRouter
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_service.documents.registry import monitor_document
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.history import MonitorList

router = APIRouter(route_class=GuardedRoute, tags=["operations"])


@router.get("/v1/admin/monitors")
@access(Scope.READ)
def list_monitors(request: Request) -> MonitorList:
    """The monitors of all machines with a heartbeat in the last day, newest first.

    `watched_at` of a population is its latest cycle, or its latest visit without new predictions.
    """
    store = worker_of(request).store
    models = {model.id: model for model in store.models.list()}
    return {"monitors": [monitor_document(one, models) for one in store.monitors.list()]}
