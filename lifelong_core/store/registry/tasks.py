"""Tasks: classification problems with their class names and confusion costs."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from numpy.typing import ArrayLike

from lifelong_core.configuration.plausibility import check_costs
from lifelong_core.decision_rules.rules import BayesRule, DecisionRule, check_rule, rule_document
from lifelong_core.deploy.checks import as_new_class_names
from lifelong_core.entities.registry import Task
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.registry.registry import change_registry, task_of
from lifelong_core.store.schema import tables
from lifelong_core.values.arrays import Floats, as_costs
from lifelong_core.values.errors import ConflictError, NotFoundError
from lifelong_core.values.names import check_name


class Tasks(Repository):
    """Adds and finds tasks.

    Name and classes of a task never change. Attaching a recommendation with other costs or another decision rule
    changes these (`Recommendations.attach`); promoting a model changes its promoted model.
    """

    def add(
        self,
        name: str,
        class_names: Sequence[str],
        costs: ArrayLike,
        *,
        decision_rule: DecisionRule | None = None,
        force_reason: str | None = None,
        actor: str,
    ) -> Task:
        """Add a task.

        Args:
            name: unique name of the task.
            class_names: (C,) different names, C >= 2; their order is that of the logits.
            costs: (C, D), cost of deciding the column when the row is true; D = C, or C + 1 to abstain.
            decision_rule: how the heads of the task decide; None: the Bayes rule.
            force_reason: reason for costs that are implausible.
            actor: name for the audit log.

        Raises:
            InvalidInputError: an argument does not fit, or the costs are implausible and there is no reason.
            ConflictError: there is a task of that name.
        """
        check_name(name, field="name")
        names = as_new_class_names(class_names)
        matrix = as_costs(costs, classes=len(names))
        forced = check_costs(matrix, force_reason=force_reason)
        rule = BayesRule() if decision_rule is None else decision_rule
        check_rule(rule, len(names))
        row = {
            "name": name,
            "class_names": list(names),
            "costs": matrix.tolist(),
            "created_at": now(),
            "decision_rule": rule_document(rule),
        }
        details = {"classes": list(names), **_unless_bayes(rule), **forced}
        with change_registry(self._database) as connection:
            if find_task(connection, name) is not None:
                raise ConflictError(
                    f"there is a task {name!r} already.",
                    field="name",
                    hint="Choose another name: the classes of a task never change.",
                )
            created = connection.execute(sa.insert(tables.tasks).values(row).returning(tables.tasks)).one()
            write_audit(connection, actor, "tasks.add", name, details)
        return task_of(created)

    def get(self, name: str) -> Task:
        """The task of that name.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            return task_named(connection, name)

    def with_id(self, task_id: int) -> Task:
        """The task with an id, which exists."""
        with self._database.read() as connection:
            return task_with_id(connection, task_id)

    def list(self) -> list[Task]:
        """All tasks, oldest first."""
        return [task_of(row) for row in self._rows(sa.select(tables.tasks).order_by(tables.tasks.c.id))]


def task_named(connection: sa.Connection, name: str) -> Task:
    """The task of that name.

    Raises:
        NotFoundError: there is none.
    """
    task = find_task(connection, name)
    if task is None:
        raise NotFoundError(
            f"there is no task {name[:80]!r}.", field="task", hint="List them: GET /v1/admin/tasks."
        )
    return task


def task_with_id(connection: sa.Connection, task_id: int) -> Task:
    """The task of a model, by the model's `task_id`."""
    return task_of(connection.execute(sa.select(tables.tasks).where(tables.tasks.c.id == task_id)).one())


def replace_costs(
    connection: sa.Connection,
    task: Task,
    costs: Floats,
    *,
    force_reason: str | None,
    actor: str,
    details: dict[str, Any],
) -> None:
    """Replace the costs of a task, within a transaction that changes the registry.

    Published heads keep their own costs. Once a head exists, the number of decisions cannot change: a head with other
    decisions than its task could neither serve nor be judged.

    Args:
        connection: the transaction.
        task: the task.
        costs: valid costs, shape (C, D).
        force_reason: reason for costs that are implausible.
        actor: name for the audit log.
        details: where they come from, for the audit log.

    Raises:
        InvalidInputError: they are implausible and there is no reason.
        ConflictError: the task has a head, and the costs have another number of decisions.
    """
    if costs.shape == task.costs.shape:
        if (costs == task.costs).all():
            return
    elif _has_head(connection, task):
        raise ConflictError(
            f"the heads of {task.name} decide between {task.costs.shape[1]} options, these costs are for"
            f" {costs.shape[1]}.",
            field="costs",
            hint=f"State costs with {task.costs.shape[1]} columns, or add a new task for other decisions.",
        )
    forced = check_costs(costs, force_reason=force_reason)
    tasks = tables.tasks
    connection.execute(sa.update(tasks).where(tasks.c.id == task.id).values(costs=costs.tolist()))
    write_audit(
        connection,
        actor,
        "tasks.costs",
        task.name,
        {**details, **forced, "old": task.costs.tolist(), "new": costs.tolist()},
    )


def replace_decision_rule(
    connection: sa.Connection, task: Task, rule: DecisionRule, *, actor: str, details: dict[str, Any]
) -> None:
    """Replace the decision rule of a task, within a transaction that changes the registry.

    Published heads keep their own rule.

    Args:
        connection: the transaction.
        task: the task.
        rule: the new rule.
        actor: name for the audit log.
        details: the reason, for the audit log.

    Raises:
        InvalidInputError: the rule does not fit the classes of the task.
    """
    check_rule(rule, len(task.class_names))
    if rule == task.decision_rule:
        return
    tasks, new = tables.tasks, rule_document(rule)
    connection.execute(sa.update(tasks).where(tasks.c.id == task.id).values(decision_rule=new))
    write_audit(
        connection,
        actor,
        "tasks.decision_rule",
        task.name,
        {**details, "old": rule_document(task.decision_rule), "new": new},
    )


def _unless_bayes(rule: DecisionRule) -> dict[str, Any]:
    return {} if isinstance(rule, BayesRule) else {"decision_rule": rule_document(rule)}


def _has_head(connection: sa.Connection, task: Task) -> bool:
    models = sa.select(tables.models.c.id).where(tables.models.c.task_id == task.id)
    query = sa.select(tables.heads.c.version).where(tables.heads.c.model_id.in_(models)).limit(1)
    return connection.execute(query).first() is not None


def find_task(connection: sa.Connection, name: str) -> Task | None:
    """The task of that name; None: there is none."""
    row = connection.execute(sa.select(tables.tasks).where(tables.tasks.c.name == name)).one_or_none()
    return None if row is None else task_of(row)
