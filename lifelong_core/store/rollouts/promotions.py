"""Promotions of the models of a task, and the roll-back to the model before."""

import sqlalchemy as sa

from lifelong_core.entities.develop.rollouts import Promotion
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.statements import ArtifactRepository
from lifelong_core.store.registry.models import check_graph_is_stored, model_with_id, put_model_in_force
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import task_named
from lifelong_core.store.rollouts.history import (
    add_rollback,
    list_promotions,
    open_rollout,
    rollback_target,
)
from lifelong_core.values.errors import ConflictError


class Promotions(ArtifactRepository):
    """Lists the promotions of a task and undoes the newest one."""

    def list(self, task: str) -> list[Promotion]:
        """All promotions of a task, oldest first, the automatic first one and roll-backs included.

        Raises:
            NotFoundError: there is no such task.
        """
        with self._database.read() as connection:
            return list_promotions(connection, task_named(connection, task).id)

    def rollback_model(self, task: str) -> Model | None:
        """The model that a roll-back of the task restores; None: there is none.

        Raises:
            NotFoundError: there is no such task.
        """
        with self._database.read() as connection:
            target = rollback_target(connection, task_named(connection, task).id)
            return None if target is None else model_with_id(connection, target.model_id)

    def roll_back(self, task: str, *, actor: str, expected_sequence: int | None = None) -> Model:
        """Promote the model that was promoted before the present one; each further call goes one step further back.

        Workers keep the graph of this model loaded, so they switch at once.

        Args:
            task: name of the task.
            actor: name for the audit log.
            expected_sequence: sequence of the newest promotion that the caller read, so that two callers do not roll
                back twice; None: any.

        Returns:
            The model that is promoted now.

        Raises:
            NotFoundError: there is no such task.
            ConflictError: no other model was promoted before, another promotion than expected is the newest, a canary
                goes on (it is not clear what to undo), or the stored graph is missing or damaged.
            UnavailableError: the database or the artifact storage does not answer.
        """
        with self._database.read() as connection:
            present = task_named(connection, task)
            _refuse_canary(connection, present)
            planned = _target(connection, present)
            model = model_with_id(connection, planned.model_id)
        check_graph_is_stored(self._artifacts, model)
        with change_registry(self._database) as connection:
            present = task_named(connection, task)
            _expect_newest(connection, present, expected_sequence)
            _refuse_canary(connection, present)
            if _target(connection, present) != planned:
                raise ConflictError(
                    f"another model of {task} was promoted meanwhile.",
                    field="task",
                    hint="Look at it, and roll back again if you still want to.",
                )
            restored_from = present.promoted_model_id
            put_model_in_force(connection, model, actor=actor)
            add_rollback(connection, planned, actor=actor)
            details = {
                "task": task,
                "from": None if restored_from is None else model_with_id(connection, restored_from).reference,
            }
            write_audit(connection, actor, "models.rollback", model.reference, details)
        return model


def _target(connection: sa.Connection, task: Task) -> Promotion:
    target = rollback_target(connection, task.id)
    if target is None:
        raise ConflictError(
            f"no other model of {task.name} was promoted before the present one.",
            field="task",
            hint="Promote the model that you want: `lifelong models promote`.",
        )
    return target


def _expect_newest(connection: sa.Connection, task: Task, expected: int | None) -> None:
    promotions = list_promotions(connection, task.id)
    newest = promotions[-1].sequence if promotions else 0
    if expected is not None and newest != expected:
        raise ConflictError(
            f"the promoted model of {task.name} changed meanwhile (promotion {newest}, expected {expected}).",
            field="expected_sequence",
            hint="Look at the promoted model and decide again.",
        )


def _refuse_canary(connection: sa.Connection, task: Task) -> None:
    """Refuse a roll-back during a canary: to undo the canary, it is ended; the promoted model is another matter."""
    rollout = open_rollout(connection, task.id)
    if rollout is not None and rollout.stage == "canary":
        candidate = model_with_id(connection, rollout.model_id).reference
        raise ConflictError(
            f"{candidate} is on trial as a canary of {task.name}; a roll-back changes the promoted model itself.",
            field="task",
            hint=f"To take {candidate} away, end its trial: `lifelong models trial {task.name} --end`."
            " Then roll back if the promoted model is wrong, too.",
        )
