"""Calibration sets: labelled logits of a model, immutable; the arrays are artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.entities.heads import CalibrationSet, HeadRecord
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.statements import ArtifactRepository
from lifelong_core.store.heads.checks import check_set_of_model
from lifelong_core.store.heads.rows import calibration_set_of
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.store.registry.models import model_referenced, model_with_id
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import task_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError


@dataclass(frozen=True)
class HeadCalibration:
    """The calibration set of a head, and the active one, on which cycles fit the next heads of its model."""

    model: str
    """reference of the model"""
    fitted_on: CalibrationSet | None
    """None: the provenance of the head names no set of the model"""
    active: CalibrationSet | None

    @property
    def is_at_risk(self) -> bool:
        """Whether the next cycle may replace the head, because another set of the model is active."""
        return None not in (self.fitted_on, self.active) and self.fitted_on != self.active

    def sentence(self) -> str:
        """The state in one or two sentences, for people."""
        if self.active is None:
            return f"{self.model} has no calibration set, so no cycle adapts its heads."
        if self.fitted_on is None:
            return f"Calibration set {self.active.id} of {self.model} is active: cycles fit heads on it."
        if self.fitted_on.id == self.active.id:
            return (
                f"Its calibration set {self.active.id} is the active one of {self.model}:"
                " cycles fit heads on it."
            )
        return (
            f"It was fitted on calibration set {self.fitted_on.id}, but set {self.active.id} stays the active one of"
            f" {self.model}: the next cycle may fit a head on that. To withdraw it:"
            f" `lifelong calibration-sets activate {self.model} {self.fitted_on.id}`."
        )


class CalibrationSets(ArtifactRepository):
    """Adds, activates and finds calibration sets."""

    def add(self, reference: str, labelled: LabeledLogits, *, actor: str) -> CalibrationSet:
        """Store the set, without its group keys, and make it the model's active one.

        A set that is stored already becomes active again.

        Raises:
            NotFoundError: there is no such model.
            InvalidInputError: the logits have another number of classes than the model's task.
        """
        labelled = without_group_keys(labelled)
        digest = self._artifacts.put(labelled.to_bytes())
        with change_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            return insert_calibration_set(connection, model, labelled, digest, actor=actor)

    def activate(self, reference: str, calibration_set_id: int, *, actor: str) -> CalibrationSet:
        """Make a stored set the active one of its model: cycles fit new heads on it. Present heads do not change.

        Raises:
            NotFoundError: there is no such model, it has no such set, or the artifact of the set is missing.
            ConflictError: the set is active already.
            OtherPreprocessingError: it was made with another preprocessing than this installation uses for the model.
        """
        with self._database.read() as connection:
            model = model_referenced(connection, reference)
            chosen = _set_of(connection, model, calibration_set_id)
        check_set_of_model(chosen.preprocessing_digest, model, field="calibration_set")
        self._artifacts.get(chosen.digest)
        with change_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            chosen = _set_of(connection, model, calibration_set_id)
            if model.calibration_set_id == chosen.id:
                raise ConflictError(
                    f"calibration set {chosen.id} of {model.reference} is active already.",
                    field="calibration_set",
                )
            _activate(connection, model, chosen.id, actor=actor)
        return chosen

    def of_head(self, record: HeadRecord) -> HeadCalibration:
        """The calibration set of a head, and the active one of its model.

        Raises:
            NotFoundError: the model was removed.
        """
        with self._database.read() as connection:
            return _calibration_of(connection, model_with_id(connection, record.model_id), record.head)

    def of_new_head(self, reference: str, head: PostProcessingHead) -> HeadCalibration:
        """As `of_head`, of a head that is not published.

        Raises:
            NotFoundError: there is no such model.
        """
        with self._database.read() as connection:
            return _calibration_of(connection, model_referenced(connection, reference), head)

    def get(self, calibration_set_id: int) -> CalibrationSet:
        """The set with that id.

        Raises:
            NotFoundError: there is none.
        """
        query = sa.select(tables.calibration_sets).where(tables.calibration_sets.c.id == calibration_set_id)
        row = self._row(query)
        if row is None:
            raise NotFoundError(f"there is no calibration set {calibration_set_id}.", field="calibration_set")
        return calibration_set_of(row)

    def load(self, calibration_set_id: int) -> LabeledLogits:
        """The arrays of the set with that id.

        Raises:
            NotFoundError: there is no such set, or its artifact is missing.
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

    The audit log gets `details` and the identity of the set.
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
            "preprocessing_digest": labelled.preprocessing_digest,
        }
        row = connection.execute(sa.insert(sets).values(values).returning(sets)).one()
    added = calibration_set_of(row)
    models = tables.models
    connection.execute(sa.update(models).where(models.c.id == model.id).values(calibration_set_id=added.id))
    identity = {"id": added.id, "digest": digest, "samples": added.samples}
    write_audit(connection, actor, "calibration_sets.add", model.reference, identity | dict(details or {}))
    return added


def activate_set_of_head(
    connection: sa.Connection, model: Model, head: PostProcessingHead, *, actor: str
) -> None:
    """Activate the calibration set of a head, within a transaction that changes the registry.

    Otherwise the next cycle would fit a head on the previous set and replace the chosen head. A head that names no set
    of the model changes nothing.
    """
    fitted_on = _fitted_on(connection, model, head)
    if fitted_on is not None and fitted_on.id != model.calibration_set_id:
        _activate(connection, model, fitted_on.id, actor=actor)


def _activate(connection: sa.Connection, model: Model, set_id: int, *, actor: str) -> None:
    models = tables.models
    connection.execute(sa.update(models).where(models.c.id == model.id).values(calibration_set_id=set_id))
    write_audit(
        connection,
        actor,
        "calibration_sets.activate",
        model.reference,
        {"id": set_id, "previous": model.calibration_set_id},
    )


def _set_of(connection: sa.Connection, model: Model, set_id: int) -> CalibrationSet:
    sets = tables.calibration_sets
    query = sa.select(sets).where(sets.c.id == set_id, sets.c.model_id == model.id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(
            f"the model {model.reference} has no calibration set {set_id}.",
            field="calibration_set",
            hint=f"List them: `lifelong calibration-sets list {model.reference}`.",
        )
    return calibration_set_of(row)


def _calibration_of(connection: sa.Connection, model: Model, head: PostProcessingHead) -> HeadCalibration:
    active = None
    if model.calibration_set_id is not None:
        active = _set_of(connection, model, model.calibration_set_id)
    return HeadCalibration(model.reference, _fitted_on(connection, model, head), active)


def _fitted_on(connection: sa.Connection, model: Model, head: PostProcessingHead) -> CalibrationSet | None:
    """The set of the model that a head was fitted on; None: its provenance names none."""
    digest = head.provenance.get("calibration_digest")
    if not isinstance(digest, str):
        return None
    sets = tables.calibration_sets
    query = sa.select(sets).where(sets.c.model_id == model.id, sets.c.content_digest == digest)
    found = [calibration_set_of(row) for row in connection.execute(query.order_by(sets.c.id))]
    active = [one for one in found if one.id == model.calibration_set_id]
    return next(iter([*active, *reversed(found)]), None)


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
            hint="Check that the logits come from a model of this task.",
        )
