"""Evaluations of models: rows with the digests of their artifacts."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.develop.evaluations import Evaluation
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.deletion import delete_rows
from lifelong_core.store.engine.statements import ArtifactRepository
from lifelong_core.store.knowledge.changes import remove_unneeded, restore_missing
from lifelong_core.store.log.identifiers import new_prediction_id
from lifelong_core.store.notifications.events import note_evaluation
from lifelong_core.store.registry.models import model_referenced
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError

KEPT = 20
"""Newest evaluations of a model that are kept; of older ones, row and artifacts are deleted."""

_evaluations = tables.evaluations


class Evaluations(ArtifactRepository):
    """Writes and finds evaluations; the newest KEPT of each model, with their artifacts."""

    def put(
        self,
        reference: str,
        *,
        result: bytes,
        report: bytes | None,
        labelled_set: bytes,
        head: str,
        recommendation_version: int | None,
        accepted: bool | None,
        samples: int,
        job_id: UUID | None = None,
        actor: str,
    ) -> Evaluation:
        """Store an evaluation with its artifacts; one that this job stored of this model before is replaced.

        Args:
            reference: the model, name@version.
            result: a `ValidationResult` as JSON.
            report: its HTML page.
            labelled_set: the samples, `LabelledSet.to_bytes`, without group keys.
            head: digest of the head that decided.
            recommendation_version: of the task's recommendations; None: it has none.
            accepted: verdict of the acceptance thresholds; None: undecided, or there are none.
            samples: number of labelled samples.
            job_id: the job that made it.
            actor: name of the person or job.

        Raises:
            NotFoundError: there is no such model.
            UnavailableError: database or artifacts do not answer; no row is stored.
        """
        contents = [result, labelled_set] if report is None else [result, labelled_set, report]
        digests = [self._artifacts.put(content) for content in contents]
        with change_registry(self._database) as connection:
            model = model_referenced(connection, reference)
            restore_missing(self._artifacts, dict(zip(digests, contents, strict=True)))
            values: dict[str, Any] = {
                "id": new_prediction_id(),
                "model_id": model.id,
                "job_id": job_id,
                "recommendation_version": recommendation_version,
                "head": head,
                "accepted": accepted,
                "samples": samples,
                "result": digests[0],
                "report": None if report is None else digests[2],
                "labelled_set": digests[1],
                "created_at": now(),
                "created_by": actor,
            }
            insert = sa.insert(_evaluations).values(values).returning(_evaluations)
            stored = read_record(connection.execute(insert).one(), Evaluation)
            self._delete_replaced(connection, stored)
            note_evaluation(connection, model, stored)
            details = {
                "id": str(stored.id),
                "recommendation_version": recommendation_version,
                "accepted": accepted,
                "samples": samples,
            }
            write_audit(connection, actor, "evaluations.add", model.reference, details)
        return stored

    def newest(
        self, reference: str, *, recommendation_version: int | None = None, head: str | None = None
    ) -> Evaluation | None:
        """The newest evaluation of a model; None: there is none.

        Args:
            reference: the model.
            recommendation_version: only of this version of the task's recommendations; None: of any or none.
            head: only of the head with this digest; None: of any.

        Raises:
            NotFoundError: there is no such model.
        """
        for evaluation in self.list(reference):
            if recommendation_version not in (None, evaluation.recommendation_version):
                continue
            if head in (None, evaluation.head):
                return evaluation
        return None

    def list(self, reference: str | None = None, *, limit: int | None = None) -> list[Evaluation]:
        """The stored evaluations of a model, or of all models, newest first.

        Raises:
            NotFoundError: there is no such model.
        """
        query = sa.select(_evaluations).order_by(_evaluations.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            if reference is not None:
                query = query.where(_evaluations.c.model_id == model_referenced(connection, reference).id)
            return [read_record(row, Evaluation) for row in connection.execute(query)]

    def get(self, identifier: UUID) -> Evaluation:
        """One evaluation.

        Raises:
            NotFoundError: there is none with this id, or it was replaced.
        """
        row = self._row(sa.select(_evaluations).where(_evaluations.c.id == identifier))
        if row is None:
            raise NotFoundError(
                f"there is no validation {identifier}.",
                field="validation",
                hint="List them: `lifelong models validations`.",
            )
        return read_record(row, Evaluation)

    def _delete_replaced(self, connection: sa.Connection, stored: Evaluation) -> None:
        """Delete the evaluations that this one replaces, and those beyond KEPT."""
        known = evaluations_of(connection, stored.model_id)
        replaced = [
            one
            for one in known
            if one.id != stored.id and one.job_id == stored.job_id and one.job_id is not None
        ]
        kept = [one for one in known if one not in replaced]
        gone = [*replaced, *kept[KEPT:]]
        if not gone:
            return
        delete_rows(connection, _evaluations, [(one.id,) for one in gone])
        remove_unneeded(connection, self._artifacts, artifacts_of(gone))


def artifacts_of(evaluations: Iterable[Evaluation]) -> set[str]:
    """Digests of the artifacts of evaluations."""
    return {
        digest
        for one in evaluations
        for digest in (one.result, one.report, one.labelled_set)
        if digest is not None
    }


def evaluations_of(connection: sa.Connection, model_id: int) -> list[Evaluation]:
    """The evaluations of a model, newest first."""
    query = sa.select(_evaluations).where(_evaluations.c.model_id == model_id)
    rows = connection.execute(query.order_by(_evaluations.c.id.desc())).all()
    return [read_record(row, Evaluation) for row in rows]
