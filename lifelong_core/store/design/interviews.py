"""Interviews, each with a revision, so that the second of two simultaneous answers is refused.

The audit log records start, answers and discard; the interview holds the values of the answers in their order.
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.design.interviews import InterviewRecord
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.engine.documents import document_text
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.identifiers import new_prediction_id
from lifelong_core.store.registry.tasks import task_named
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from lifelong_core.design.interview.interview import Interview

_interviews = tables.interviews


class Interviews(Repository):
    """Stores interviews until they are discarded."""

    def start(self, interview: "Interview", *, task: str | None, actor: str) -> InterviewRecord:
        """Store a new interview; its revision is 1.

        Args:
            interview: its present state.
            task: the task of the interview; None: none yet.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is no such task.
            PayloadTooLargeError: the interview is too large to be stored.
            InvalidInputError: the interview cannot be written as JSON.
        """
        moment = now()
        values: dict[str, Any] = {
            "id": new_prediction_id(),
            "revision": 1,
            "document": document_text(interview.to_json, field="interview"),
            "created_at": moment,
            "created_by": actor,
            "updated_at": moment,
            "updated_by": actor,
        }
        with self._database.write() as connection:
            values["task_id"] = None if task is None else task_named(connection, task).id
            connection.execute(sa.insert(_interviews), values)
            write_audit(connection, actor, "interviews.start", str(values["id"]), {"task": task})
            return _record(connection, values["id"])

    def get(self, interview_id: UUID) -> InterviewRecord:
        """The interview with that id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            return _record(connection, interview_id)

    def list(self, limit: int = 100) -> list[InterviewRecord]:
        """The newest interviews by start, newest first."""
        query = _with_task().order_by(_interviews.c.id.desc()).limit(limit)
        return [_record_of(row) for row in self._rows(query)]

    def save(
        self, interview_id: UUID, interview: "Interview", *, expected_revision: int | None, actor: str
    ) -> InterviewRecord:
        """Replace a stored interview by its next state; its revision grows by one.

        Args:
            interview_id: of the stored interview.
            interview: its next state.
            expected_revision: the revision that the caller read; None: any.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is no such interview, or it was discarded.
            ConflictError: the interview has another revision.
            PayloadTooLargeError: the interview is too large to be stored.
            InvalidInputError: the interview cannot be written as JSON.
        """
        document = document_text(interview.to_json, field="interview")
        place = _interviews.c.id == interview_id
        changed = sa.update(_interviews).where(place)
        if expected_revision is not None:
            changed = changed.where(_interviews.c.revision == expected_revision)
        values = {"document": document, "updated_at": now(), "updated_by": actor}
        with self._database.write() as connection:
            found = connection.execute(changed.values(revision=_interviews.c.revision + 1, **values)).rowcount
            record = _record(connection, interview_id)
            if not found:
                raise ConflictError(
                    f"the interview changed meanwhile (revision {record.revision}, expected {expected_revision}):"
                    f" {record.updated_by} answered.",
                    field="revision",
                    hint="Look at where it stands now and answer again.",
                )
            details = {"revision": record.revision}
            write_audit(connection, actor, "interviews.answer", str(interview_id), details)
            return record

    def discard(self, interview_id: UUID, actor: str) -> None:
        """Delete an interview; an attached recommendation from it stays.

        Raises:
            NotFoundError: there is no such interview.
        """
        with self._database.write() as connection:
            record = _record(connection, interview_id)
            connection.execute(sa.delete(_interviews).where(_interviews.c.id == interview_id))
            details = {"task": record.task, "revision": record.revision}
            write_audit(connection, actor, "interviews.discard", str(interview_id), details)


def _with_task() -> sa.Select[Any]:
    task = tables.tasks.c.name.label("task")
    return sa.select(_interviews, task).select_from(_interviews.outerjoin(tables.tasks))


def _record(connection: sa.Connection, interview_id: UUID) -> InterviewRecord:
    row = connection.execute(_with_task().where(_interviews.c.id == interview_id)).one_or_none()
    if row is None:
        raise NotFoundError(
            f"there is no interview {interview_id}.",
            field="interview",
            hint="List them: GET /v1/admin/interviews.",
        )
    return _record_of(row)


def _record_of(row: Row) -> InterviewRecord:
    return read_record(row, InterviewRecord)
