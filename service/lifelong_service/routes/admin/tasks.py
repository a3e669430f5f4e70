"""`/v1/admin/tasks`: classification problems."""

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from lifelong_core.decision_rules.rules import rule_from_document
from lifelong_core.entities.access import Scope
from lifelong_core.entities.heads import DecisionRuleDocument
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.names import Name
from lifelong_service.documents.registry import task_document
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.schemas.registry import TaskAnswer, TaskList

router = APIRouter(route_class=GuardedRoute, tags=["tasks"])


class NewTask(RequestDocument):
    """A task: class names in the order of the logits, costs (rows true class, columns decision) and decision rule.

    Without a rule, heads decide for the least expected cost.
    """

    name: Name
    classes: list[str]
    costs: list[list[float]]
    decision_rule: DecisionRuleDocument | None = None
    force_reason: str | None = Field(
        None, description="Why costs that look like a mistake are right; kept in the audit log."
    )


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
    rule = None if new.decision_rule is None else rule_from_document(new.decision_rule)
    task = store.tasks.add(
        new.name,
        new.classes,
        new.costs,
        decision_rule=rule,
        force_reason=new.force_reason,
        actor=actor_of(request),
    )
    return task_document(task, {})
