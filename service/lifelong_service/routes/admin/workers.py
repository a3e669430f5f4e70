"""`/v1/admin/workers`: serving processes and their heads."""

from fastapi import APIRouter
from starlette.requests import Request

from lifelong_core.entities.access import Scope
from lifelong_service.documents.registry import worker_document
from lifelong_service.guard.access import access, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.history import WorkerList

router = APIRouter(route_class=GuardedRoute, tags=["operations"])


@router.get("/v1/admin/workers")
@access(Scope.READ)
def list_workers(request: Request) -> WorkerList:
    """The serving processes of all machines, latest heartbeat first, each with its heads.

    `revision` is the present revision of the registry: a worker with the same revision has loaded every change.
    """
    store = worker_of(request).store
    models = {model.id: model for model in store.models.list()}
    return {
        "revision": store.revision(),
        "workers": [worker_document(worker, models) for worker in store.workers.list()],
    }
