"""`/v1/admin/tasks`: classification problems."""

from fastapi import APIRouter
from starlette.requests import Request

from lifelong_core.names import Name
from lifelong_core.store.access.records import Scope
from lifelong_service.documents.registry import task_document
from lifelong_service.http.guard import GuardedRoute, access, actor_of, worker_of
from lifelong_service.schemas.registry import TaskAnswer, TaskList
from lifelong_service.schemas.requests import RequestDocument

router = APIRouter(route_class=GuardedRoute, tags=["tasks"])


class NewTask(RequestDocument):
    """A task: class names in the order of the logits, and costs (rows true class, columns decision)."""

    name: Name
    classes: list[str]
    costs: list[list[float]]


@router.get("/v1/admin/tasks")
@access(Scope.READ)
def list_tasks(request: Request) -> TaskList:
    """All tasks."""
    store = worker_of(request).store
    models = {model.id: model for model in store.models.list()}
    return {"tasks": [task_document(task, models) for task in store.tasks.list()]}


@router.post("/v1/admin/tasks", status_code=201)
@access(Scope.ADMIN)
def add_task(request: Request, new: NewTask) -> TaskAnswer:
    """Add a task."""
    store = worker_of(request).store
    return task_document(store.tasks.add(new.name, new.classes, new.costs, actor=actor_of(request)), {})
