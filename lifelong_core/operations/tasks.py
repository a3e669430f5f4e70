"""Tasks: classification problems."""

from dataclasses import dataclass

from lifelong_core.decision_rules.rules import rule_from_document
from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.heads import DecisionRuleDocument
from lifelong_core.entities.registry import TaskAnswer
from lifelong_core.operations.operation import Call, Context, ForceReason, operation
from lifelong_core.values.names import Name


@dataclass(frozen=True, kw_only=True)
class TaskList(Entity):
    """All tasks."""

    tasks: list[TaskAnswer]


class ListTasks(Call[TaskList]):
    """Nothing is chosen."""


class NewTask(Call[TaskAnswer]):
    """A task: class names in the order of the logits, costs (rows true class, columns decision) and decision rule.

    Without a rule, heads decide for the least expected cost.
    """

    name: Name
    classes: list[str]
    costs: list[list[float]]
    decision_rule: DecisionRuleDocument | None = None
    force_reason: ForceReason = None


@operation("GET", "/v1/admin/tasks", scope=Scope.READ, example=ListTasks())
def list_tasks(context: Context, call: ListTasks) -> TaskList:  # noqa: ARG001
    """All tasks."""
    references = {model.id: model.reference for model in context.store.models.list()}
    return TaskList(
        tasks=[
            TaskAnswer.of(task, promoted_model=references.get(task.promoted_model_id or 0))
            for task in context.store.tasks.list()
        ]
    )


@operation(
    "POST",
    "/v1/admin/tasks",
    scope=Scope.ADMIN,
    status=201,
    example=NewTask(name="moles", classes=["benign", "malignant"], costs=[[0, 1], [5, 0]]),
)
def add_task(context: Context, call: NewTask) -> TaskAnswer:
    """Add a task."""
    task = context.store.tasks.add(
        call.name,
        call.classes,
        call.costs,
        decision_rule=None if call.decision_rule is None else rule_from_document(call.decision_rule),
        force_reason=call.force_reason,
        actor=context.actor,
    )
    return TaskAnswer.of(task, promoted_model=None)
