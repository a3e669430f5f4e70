"""Trainings: rows with the digests of their artifacts."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy import LabeledLogits
from lifelong_core.entities.develop.trainings import StoredTraining
from lifelong_core.entities.registry import Model
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.engine.documents import document_text
from lifelong_core.store.engine.statements import ArtifactRepository
from lifelong_core.store.heads.calibration_sets import insert_calibration_set
from lifelong_core.store.knowledge.changes import remove_unneeded, restore_missing
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.store.registry.models import insert_model, model_referenced, model_with_id
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError
from lifelong_core.values.names import check_name
from lifelong_core.values.preprocessing import Preprocessing

if TYPE_CHECKING:
    from lifelong_core.develop.training.recipe import Recipe

_trainings = tables.trainings


class Trainings(ArtifactRepository):
    """Registers trained models, and finds how they were trained."""

    def record(
        self,
        task: str,
        name: str,
        *,
        onnx: bytes,
        preprocessing: Preprocessing,
        recipe: "Recipe",
        result: bytes,
        calibration: LabeledLogits,
        test_set: bytes,
        job_id: UUID,
        actor: str,
    ) -> Model:
        """Add the next version of a model together with its training and its calibration set, in one transaction.

        A job that did so before gets its model again: begun anew, it registers no second one.

        Args:
            task: name of the task.
            name: of the model.
            onnx: the ONNX file.
            preprocessing: steps from an image to the input of the graph.
            recipe: what was asked for.
            result: a `TrainingResult` as JSON.
            calibration: logits and labels of the calibration split; group keys are left out.
            test_set: logits and labels of the test split, `LabelledSet.to_bytes`, without group keys.
            job_id: the job that trained it.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is no such task.
            InvalidInputError: the calibration set has another number of classes than the task.
            ConflictError: the name belongs to another task.
            UnavailableError: database or artifacts do not answer; nothing is registered.
        """
        check_name(name, field="name")
        text = document_text(recipe.to_json, field="recipe")
        calibration = without_group_keys(calibration)
        contents = [onnx, result, test_set, calibration.to_bytes()]
        digests = [self._artifacts.put(content) for content in contents]
        with change_registry(self._database) as connection:
            known = _training_where(connection, _trainings.c.job_id == job_id)
            if known is not None:
                return model_with_id(connection, known.model_id)
            restore_missing(self._artifacts, dict(zip(digests, contents, strict=True)))
            model = insert_model(
                connection,
                task,
                name,
                kind="onnx",
                artifact=digests[0],
                preprocessing=preprocessing,
                actor=actor,
            )
            values: dict[str, Any] = {
                "model_id": model.id,
                "job_id": job_id,
                "recipe": text,
                "result": digests[1],
                "test_set": digests[2],
                "created_at": now(),
                "created_by": actor,
            }
            connection.execute(sa.insert(_trainings).values(values))
            insert_calibration_set(connection, model, calibration, digests[3], actor=actor)
            details = {"job": str(job_id), "result": digests[1], "test_set": digests[2]}
            write_audit(connection, actor, "trainings.add", model.reference, details)
            return model_with_id(connection, model.id)

    def put_report(
        self, reference: str, *, test_set: bytes, report: bytes, page: bytes, actor: str
    ) -> StoredTraining:
        """Add the promotion report to the training of a model, or replace it.

        Args:
            reference: the model.
            test_set: the test split with the logits of both models, `PairedSet.to_bytes`; it replaces the set of the
                new model alone.
            report: a `PromotionReport` as JSON.
            page: its HTML page.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is no such model, or it was not trained here.
            UnavailableError: database or artifacts do not answer; nothing is changed.
        """
        contents = [test_set, report, page]
        digests = [self._artifacts.put(content) for content in contents]
        with change_registry(self._database) as connection:
            restore_missing(self._artifacts, dict(zip(digests, contents, strict=True)))
            model = model_referenced(connection, reference)
            before = _training_of(connection, model)
            values = {"test_set": digests[0], "report": digests[1], "report_page": digests[2]}
            change = sa.update(_trainings).where(_trainings.c.model_id == model.id).values(values)
            after = _stored(connection.execute(change.returning(_trainings)).one())
            remove_unneeded(connection, self._artifacts, before.artifacts - after.artifacts)
            write_audit(connection, actor, "trainings.report", model.reference, values)
        return after

    def get(self, reference: str) -> StoredTraining:
        """How a model was trained.

        Raises:
            NotFoundError: there is no such model, or it was not trained here.
        """
        with self._database.read() as connection:
            return _training_of(connection, model_referenced(connection, reference))

    def of_job(self, job_id: UUID) -> StoredTraining | None:
        """The training of a job; None: it has registered no model, or that was removed."""
        with self._database.read() as connection:
            return _training_where(connection, _trainings.c.job_id == job_id)

    def list(self, limit: int | None = None) -> list[StoredTraining]:
        """The newest trainings, newest first; all of them without a limit."""
        query = sa.select(_trainings).order_by(_trainings.c.model_id.desc()).limit(limit)
        return [_stored(row) for row in self._rows(query)]


def artifacts_of_training(connection: sa.Connection, model_id: int) -> set[str]:
    """Digests of the artifacts of a model's training; empty: it was not trained here."""
    found = _training_where(connection, _trainings.c.model_id == model_id)
    return set() if found is None else found.artifacts


def _training_of(connection: sa.Connection, model: Model) -> StoredTraining:
    training = _training_where(connection, _trainings.c.model_id == model.id)
    if training is None:
        raise NotFoundError(
            f"the model {model.reference} was not trained here.",
            field="model",
            hint="Trainings are kept of models that `lifelong retrain` made.",
        )
    return training


def _training_where(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> StoredTraining | None:
    row = connection.execute(sa.select(_trainings).where(condition)).one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Row) -> StoredTraining:
    return read_record(row, StoredTraining, recipe_document=row.recipe)
