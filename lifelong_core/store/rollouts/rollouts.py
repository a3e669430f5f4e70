"""Trials of models beside the promoted one: at most one of a task goes on."""

import math
from typing import Any

import sqlalchemy as sa

from lifelong_core.entities.develop.rollouts import Rollout, Stage
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.registry.models import check_has_head, model_with_id
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import task_named, task_with_id
from lifelong_core.store.rollouts.history import close_rollout, open_rollout, rollout_of
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError

_rollouts = tables.rollouts


class Rollouts(Repository):
    """Ends and lists trials; `trials.start_trial` starts and changes them."""

    def current(self, task: str) -> Rollout | None:
        """The trial of a task that goes on; None: there is none.

        Raises:
            NotFoundError: there is no such task.
        """
        with self._database.read() as connection:
            return open_rollout(connection, task_named(connection, task).id)

    def list(self, task: str) -> list[Rollout]:
        """All trials of a task, oldest first.

        Raises:
            NotFoundError: there is no such task.
        """
        with self._database.read() as connection:
            query = sa.select(_rollouts).where(_rollouts.c.task_id == task_named(connection, task).id)
            return [rollout_of(row) for row in connection.execute(query.order_by(_rollouts.c.id))]

    def end(self, task: str, *, actor: str) -> Rollout:
        """End the trial of a task: the promoted model answers all requests that name no version.

        Raises:
            NotFoundError: there is no such task, or no trial of it goes on.
        """
        with change_registry(self._database) as connection:
            rollout = open_rollout(connection, task_named(connection, task).id)
            if rollout is None:
                raise NotFoundError(
                    f"no model of {task} is on trial.",
                    field="task",
                    hint="Start a trial: `lifelong models shadow MODEL`.",
                )
            model = model_with_id(connection, rollout.model_id)
            details = {"stage": rollout.stage, "share": rollout.share, "outcome": "ended"}
            write_audit(connection, actor, "rollouts.end", model.reference, details)
            return close_rollout(connection, rollout, actor=actor, outcome="ended")


def check_share(stage: Stage, share: float) -> float:
    """The share of a stage: 0 for a shadow; for a canary above 0 and at most 1.

    Raises:
        InvalidInputError: it is another number.
    """
    if stage == "shadow":
        return 0.0
    if not (math.isfinite(share) and 0 < share <= 1):
        raise InvalidInputError(
            f"expected a share above 0 and at most 1, got {share:g}.",
            field="share",
            hint="0.05 gives the candidate 5 % of the groups; to take it away, end its trial.",
        )
    return float(share)


def check_candidate(connection: sa.Connection, model: Model) -> Task:
    """Make sure that a model can be tried beside the promoted one; return its task.

    Raises:
        ConflictError: the task has no promoted model, the model is the promoted one or has no head, one of the two runs
            elsewhere, or another model of the task is on trial.
    """
    task = task_with_id(connection, model.task_id)
    check_has_head(connection, model)
    if task.promoted_model_id is None:
        raise ConflictError(
            f"the task {task.name} has no promoted model to try {model.reference} beside.",
            field="model",
            hint=f"Promote it: `lifelong models promote {model.reference}`.",
        )
    if task.promoted_model_id == model.id:
        raise ConflictError(
            f"{model.reference} is the promoted model of {task.name} already.",
            field="model",
            hint="Try another version.",
        )
    promoted = model_with_id(connection, task.promoted_model_id)
    external = next((one for one in (model, promoted) if one.kind == "external"), None)
    if external is not None:
        raise ConflictError(
            f"{external.reference} runs elsewhere, so the service cannot compute logits of both models.",
            field="model",
            hint=f"Send the logits of {external.reference} to /v1/logits with its name and version, then promote.",
        )
    rollout = open_rollout(connection, task.id)
    if rollout is not None and rollout.model_id != model.id:
        other = model_with_id(connection, rollout.model_id).reference
        raise ConflictError(
            f"{other} is on trial for {task.name}, and a task has one trial at a time.",
            field="model",
            hint=f"End it: `lifelong models trial {task.name} --end`.",
        )
    return task


def put_on_trial(
    connection: sa.Connection,
    model: Model,
    stage: Stage,
    share: float,
    *,
    actor: str,
    details: dict[str, Any],
) -> Rollout:
    """Start the trial of a checked candidate, or change its stage and share, within a transaction of the registry.

    The id of a trial stays, so that a larger share keeps the groups of a smaller one.
    """
    moment, rollout = now(), open_rollout(connection, model.task_id)
    changed = {"stage": stage, "share": share, "changed_at": moment}
    if rollout is None:
        started = {"task_id": model.task_id, "model_id": model.id, "started_at": moment, "started_by": actor}
        statement = sa.insert(_rollouts).values({**started, **changed})
    else:
        statement = sa.update(_rollouts).where(_rollouts.c.id == rollout.id).values(changed)
        details = {**details, "before": {"stage": rollout.stage, "share": rollout.share}}
    action = "rollouts.start" if rollout is None else "rollouts.change"
    details = {"stage": stage, "share": share, **details}
    write_audit(connection, actor, action, model.reference, details)
    return rollout_of(connection.execute(statement.returning(_rollouts)).one())
