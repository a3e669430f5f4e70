"""Checks that a head fits a model: classes, costs and decision rule of the task, and the calibration set."""

import numpy as np
import sqlalchemy as sa

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError


def check_fit(task: Task, head: PostProcessingHead, *, field: str = "head") -> None:
    """Make sure that a head fits the task; `field` names it in errors.

    Raises:
        InvalidInputError: it has other class names or costs of another shape.
    """
    if head.class_names != task.class_names:
        raise InvalidInputError(
            f"the head has the classes {list(head.class_names)}, the task {task.name} has {list(task.class_names)}.",
            field=field,
            hint="Fit the head on a calibration set of this model, with the task's class names.",
        )
    if head.costs.shape != task.costs.shape:
        raise InvalidInputError(
            f"the head has costs of shape {head.costs.shape}, the task {task.name} {task.costs.shape}.",
            field=field,
            hint="Use a cost matrix with the task's decisions.",
        )


def follows_task(head: PostProcessingHead, task: Task) -> bool:
    """Whether a head decides by the present costs and the present decision rule of the task."""
    return np.array_equal(head.costs, task.costs) and head.decision_rule == task.decision_rule


def check_digest(head: PostProcessingHead, expected: str | None) -> None:
    """Make sure that a head has the digest that its sender stated.

    Raises:
        InvalidInputError: it has another digest than expected.
    """
    if expected is not None and head.digest != expected:
        raise InvalidInputError(
            f"the head has the digest {head.digest}, not {expected[:80]!r}.",
            field="digest",
            hint="The document was changed on its way, or belongs to another head: send the one that was meant.",
        )


def check_calibration(connection: sa.Connection, model: Model, head: PostProcessingHead) -> None:
    """Make sure that a head was not fitted on another model's calibration set.

    An unregistered set is accepted.

    Raises:
        InvalidInputError: its provenance names a set of other models only.
    """
    digest = head.provenance.get("calibration_digest")
    if not isinstance(digest, str):
        return
    sets, models = tables.calibration_sets, tables.models
    owners = connection.execute(
        sa.select(models.c.id, models.c.name, models.c.version)
        .join(sets, sets.c.model_id == models.c.id)
        .where(sets.c.content_digest == digest)
        .order_by(models.c.id)
    ).all()
    if owners and model.id not in {owner.id for owner in owners}:
        raise InvalidInputError(
            f"the head was fitted on the calibration set of {owners[0].name}@{owners[0].version},"
            f" not of {model.reference}.",
            field="head",
            hint="Fit it on a calibration set of this model: the logits of another one mean something else.",
        )
