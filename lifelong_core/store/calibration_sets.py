"""Calibration sets: labelled logits of a model, immutable; the arrays are artifacts."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from lifelong_core.deploy import LabeledLogits
from lifelong_core.errors import InvalidInputError, NotFoundError
from lifelong_core.store import tables
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.audit import write_audit
from lifelong_core.store.engine import Database
from lifelong_core.store.models import model_referenced
from lifelong_core.store.records import CalibrationSet, Model, Task
from lifelong_core.store.registry import changing_registry
from lifelong_core.store.rows import calibration_set_of, now
from lifelong_core.store.tasks import task_with_id


class CalibrationSets:
    """Adds and finds calibration sets."""

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database = database
        self._artifacts = artifacts

    def add(self, reference: str, labelled: LabeledLogits, *, actor: str) -> CalibrationSet:
        """Keep the set and make it the model's active one; a set that the model has already becomes active again.

        Raises:
            NotFoundError: there is no such model.
            InvalidInputError: the logits have another number of classes than the model's task.
        """
        digest = self._artifacts.put(labelled.to_bytes())
        with changing_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            return insert_calibration_set(connection, model, labelled, digest, actor=actor)

    def get(self, calibration_set_id: int) -> CalibrationSet:
        """The set with that id.

        Raises:
            NotFoundError: there is none.
        """
        query = sa.select(tables.calibration_sets).where(tables.calibration_sets.c.id == calibration_set_id)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFoundError(f"there is no calibration set {calibration_set_id}.", field="calibration_set")
        return calibration_set_of(row)

    def load(self, calibration_set_id: int) -> LabeledLogits:
        """The arrays of the set with that id.

        Raises:
            NotFoundError: there is no such set, or its artifact is gone.
        """
        return LabeledLogits.from_bytes(self._artifacts.get(self.get(calibration_set_id).digest))

    def list(self, reference: str) -> list[CalibrationSet]:
        """The sets of a model, oldest first.

        Raises:
            NotFoundError: there is no such model.
        """
        sets = tables.calibration_sets
        with self._database.read() as connection:
            model = model_referenced(connection, reference)
            query = sa.select(sets).where(sets.c.model_id == model.id).order_by(sets.c.id)
            return [calibration_set_of(row) for row in connection.execute(query)]


def insert_calibration_set(
    connection: sa.Connection,
    model: Model,
    labelled: LabeledLogits,
    digest: str,
    *,
    actor: str,
    details: Mapping[str, Any] | None = None,
) -> CalibrationSet:
    """Add the set, whose arrays are the artifact `digest`, within a transaction that changes the registry.

    `details` go to the audit log, beside what identifies the set.
    """
    check_classes(labelled, task_with_id(connection, model.task_id))
    sets = tables.calibration_sets
    known = sa.select(sets).where(sets.c.model_id == model.id, sets.c.digest == digest)
    row = connection.execute(known).one_or_none()
    if row is None:
        values = {
            "model_id": model.id,
            "digest": digest,
            "samples": labelled.samples,
            "prevalence": labelled.prevalence.tolist(),
            "created_at": now(),
            "content_digest": labelled.digest,
        }
        row = connection.execute(sa.insert(sets).values(values).returning(sets)).one()
    elif row.content_digest is None:
        change = sa.update(sets).where(sets.c.id == row.id).values(content_digest=labelled.digest)
        connection.execute(change)
    added = calibration_set_of(row)
    models = tables.models
    connection.execute(sa.update(models).where(models.c.id == model.id).values(calibration_set_id=added.id))
    identity = {"id": added.id, "digest": digest, "samples": added.samples}
    write_audit(
        connection,
        actor=actor,
        action="calibration_sets.add",
        subject=model.reference,
        details=identity | dict(details or {}),
    )
    return added


def check_classes(labelled: LabeledLogits, task: Task) -> None:
    """Make sure that a calibration set has a column for each class of the task.

    Raises:
        InvalidInputError: it has another number of columns.
    """
    classes = len(task.class_names)
    if labelled.classes != classes:
        raise InvalidInputError(
            f"expected {classes} columns, one per class of the task, got {labelled.classes}.",
            field="logits",
            mend="Check that the logits come from a model of this task.",
        )
