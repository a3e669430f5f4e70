"""Checks that a head fits a model (classes, costs and decision rule of the task, calibration set), and that a
calibration set was made with the preprocessing of its model, as this installation computes it."""

import numpy as np
import sqlalchemy as sa

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.entities.registry import Model, Task
from lifelong_core.images.preprocessing_digest import check_preprocessing_digest, differs
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing


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


class CalibratedOtherwiseError(ConflictError):
    """The active calibration set of a model was made with another preprocessing; promotion needs a reason."""

    def __init__(self, model: Model) -> None:
        super().__init__(
            f"the active calibration set of {model.reference} was made with another preprocessing document or image"
            " decoder than this installation uses for the model.",
            field="model",
            hint=f"{_calibrate(model.calibration_command)} If it is right all the same, give the reason as"
            " `force_reason` in the query (`--force-because`).",
        )


def check_set_of_model(recorded: str | None, model: Model, *, field: str = "preprocessing_digest") -> None:
    """Make sure that a calibration set was made with the preprocessing of its model; see `check_preprocessing_digest`.

    Args:
        recorded: digest of the set; None: unknown, which is accepted.
        model: its model.
        field: field of the error.

    Raises:
        OtherPreprocessingError: it was made with another one.
    """
    hint = _calibrate(model.calibration_command)
    check_preprocessing_digest(recorded, model.preprocessing, field=field, hint=hint)


def check_first_set(recorded: str | None, preprocessing: Preprocessing | None) -> None:
    """As `check_set_of_model`, for a model that is not registered yet.

    Raises:
        OtherPreprocessingError: the set was made with another preprocessing.
    """
    hint = (
        "Add the model without this set, then calibrate it with images: `lifelong calibrate NAME held_out/`."
    )
    check_preprocessing_digest(recorded, preprocessing, field="preprocessing_digest", hint=hint)


def other_preprocessing(connection: sa.Connection, model: Model) -> CalibratedOtherwiseError | None:
    """The error that the active set of a model was made with another preprocessing; None: it was not, or is unknown."""
    recorded = active_digests(connection, model.id).get(model.id)
    return CalibratedOtherwiseError(model) if differs(recorded, model.preprocessing) else None


def active_digests(connection: sa.Connection, model_id: int | None = None) -> dict[int, str]:
    """Known preprocessing digests of the active calibration sets, by model id; of one model, or of all."""
    models, sets = tables.models, tables.calibration_sets
    query = (
        sa.select(models.c.id, sets.c.preprocessing_digest)
        .join(sets, sets.c.id == models.c.calibration_set_id)
        .where(sets.c.preprocessing_digest.is_not(None))
        .order_by(models.c.id)
    )
    if model_id is not None:
        query = query.where(models.c.id == model_id)
    return {row.id: row.preprocessing_digest for row in connection.execute(query)}


def _calibrate(command: str) -> str:
    return f"Calibrate it again with images, through the service that will serve it: `{command}`."
