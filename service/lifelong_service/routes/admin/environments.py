"""`/v1/admin/environments`: hospitals, scanners or seasons from which predictions come."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.names import Name
from lifelong_service.documents.registry import environment_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.history import EnvironmentAnswer, EnvironmentList

router = APIRouter(route_class=GuardedRoute, tags=["environments"])


class NewEnvironment(RequestDocument):
    """An environment, such as a hospital, a scanner or a season."""

    name: Name


@router.get("/v1/admin/environments")
@access(Scope.READ)
def list_environments(request: Request) -> EnvironmentList:
    """All environments, the disabled ones included."""
    found = worker_of(request).store.environments.all()
    return {
        "environments": [one.name for one in found],
        "details": [environment_document(one) for one in found],
    }


@router.post("/v1/admin/environments", status_code=201)
@access(Scope.OPERATE)
def add_environment(request: Request, new: NewEnvironment) -> EnvironmentAnswer:
    """Add an environment; an existing one is unchanged. Every worker accepts it within a second."""
    store = worker_of(request).store
    return environment_document(store.environments.add(new.name, actor=actor_of(request)))


@router.post("/v1/admin/environments/{name}/disable")
@access(Scope.OPERATE)
def disable_environment(request: Request, name: str) -> EnvironmentAnswer:
    """Disable an environment: predictions in it get status 403; logged predictions stay and may be labelled."""
    store = worker_of(request).store
    return environment_document(store.environments.disable(name, actor=actor_of(request)))


@router.post("/v1/admin/environments/{name}/enable")
@access(Scope.OPERATE)
def enable_environment(request: Request, name: str) -> EnvironmentAnswer:
    """Enable an environment: predictions in it are allowed again."""
    store = worker_of(request).store
    return environment_document(store.environments.enable(name, actor=actor_of(request)))


@router.delete("/v1/admin/environments/{name}", status_code=204)
@access(Scope.ADMIN)
def delete_environment(request: Request, name: str) -> Response:
    """Delete an environment without logged predictions and published heads; others get status 409: disable them."""
    worker_of(request).store.environments.delete(name, actor=actor_of(request))
    return Response(status_code=204)
