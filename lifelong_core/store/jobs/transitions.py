"""How jobs begin and end (by their holder, without one, or cancelled), within the transaction of the caller."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.jobs import Job, JobState
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.documents import values_text
from lifelong_core.store.jobs.rows import change_job, claim_values, error_text, existing_job, is_free, job_of
from lifelong_core.store.log.identifiers import new_prediction_id
from lifelong_core.store.notifications.events import note_job
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import TooManyRequestsError

LARGEST_PAYLOAD = 128 * 2**10
"""Bytes, enough for all metadata keys of a labelled set; arrays belong in artifacts."""
SENDING_SECONDS = 600.0
"""Claim of a job whose labelled set is being uploaded; longer than any upload."""
MOST_QUEUED = 100
"""Queued jobs of one actor."""
_RETRY_SECONDS = 60
_LOCK = 0x6C6C6A6F
"""Key of the PostgreSQL advisory lock that lets one transaction submit jobs at a time."""

_jobs = tables.jobs

MOST_ATTEMPTS = 3
CANCELLED_AT_ONCE = 50
"""Jobs that one transaction cancels, so that other writers wait only briefly."""

_UNFINISHED = {
    "message": f"it was started {MOST_ATTEMPTS} times and never ended: the process died, or lost its connection to the"
    " database or the artifacts.",
    "hint": "Look into the log of the monitor (was the memory full?), then submit it again.",
}
_STUCK = {
    "message": f"it was started {MOST_ATTEMPTS} times from its last checkpoint and never reached the next one: the"
    " process died, or lost its connection to the database or the artifacts.",
    "hint": "Look into its log and the log of the monitor (was the memory full?); submit it again with less to do at"
    " once, e.g. smaller batches.",
}


def find_or_insert_job(
    connection: sa.Connection, kind: str, payload: Mapping[str, Any], *, actor: str, holder: str | None = None
) -> Job:
    """`insert_job`, unless an identical job of the same actor is queued: then that one.

    Raises:
        TooManyRequestsError: the actor has MOST_QUEUED queued jobs.
    """
    if connection.dialect.name == "postgresql":  # SQLite has one writer
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    queued = (_jobs.c.state == "queued", _jobs.c.created_by == actor)
    text = values_text(payload, most=LARGEST_PAYLOAD, field="payload")
    same = sa.select(_jobs).where(*queued, _jobs.c.kind == kind, _jobs.c.payload == text).limit(1)
    row = connection.execute(same).one_or_none()
    if row is not None:
        return job_of(row)
    if connection.execute(sa.select(sa.func.count()).where(*queued)).scalar_one() >= MOST_QUEUED:
        raise TooManyRequestsError(
            f"{actor} has {MOST_QUEUED} queued jobs, as many as allowed.",
            field="job",
            hint="Wait until monitors have done some, or cancel them: POST /v1/admin/jobs/cancel,"
            f" `lifelong jobs cancel --created-by {actor}`.",
            retry_after_seconds=_RETRY_SECONDS,
        )
    return insert_job(connection, kind, payload, actor=actor, holder=holder)


def insert_job(
    connection: sa.Connection, kind: str, payload: Mapping[str, Any], *, actor: str, holder: str | None = None
) -> Job:
    """Insert a queued job, or one that `holder` has claimed."""
    values: dict[str, Any] = {
        "id": new_prediction_id(),
        "kind": kind,
        "payload": values_text(payload, most=LARGEST_PAYLOAD, field="payload"),
        "state": "queued",
        "attempts": 0,
        "token": 0,
        "created_by": actor,
    }
    moment = values["created_at"] = database_time(connection)
    if holder is not None:
        values |= claim_values(moment, SENDING_SECONDS, holder, attempts=1, token=1)
    row = connection.execute(sa.insert(_jobs).values(values).returning(_jobs)).one()
    write_audit(connection, actor, "jobs.submit", str(values["id"]), {"kind": kind})
    return job_of(row)


def end_held(connection: sa.Connection, job: Job, *, actor: str, state: JobState, **outcome: str) -> Job:
    """End a job by its holder.

    Raises:
        ConflictError: another claim is the latest, or the job has ended.
    """
    ended = change_job(connection, job, {**_ending(connection, state), **outcome})
    _write_end(connection, ended, actor)
    return ended


def end_unclaimed(connection: sa.Connection, job: Job, *, actor: str) -> Job:
    """End a job without a holder that is not started again, because it was cancelled or has no attempts left."""
    if job.cancelled_at is not None:
        return end_free(connection, job, "cancelled")
    error = error_text(_UNFINISHED if job.checkpoint is None else _STUCK)
    ended = end_free(connection, job, "failed", error=error)
    _write_end(connection, ended, actor)
    return ended


def end_free(connection: sa.Connection, job: Job, state: JobState, **outcome: str) -> Job:
    """End a job without a holder, whose row this transaction has locked."""
    values = {**_ending(connection, state), **outcome}
    change = sa.update(_jobs).where(_jobs.c.id == job.id).values(**values).returning(_jobs)
    return job_of(connection.execute(change).one())


def lock_row(connection: sa.Connection, job_id: UUID) -> Job:
    """The job, which no other transaction changes before the end of this one.

    Raises:
        NotFoundError: there is none.
    """
    row = connection.execute(sa.select(_jobs).where(_jobs.c.id == job_id).with_for_update()).one_or_none()
    return existing_job(row, job_id)


def lock_queued(connection: sa.Connection, created_by: str, kind: str | None) -> list[Job]:
    """Up to CANCELLED_AT_ONCE queued jobs of an actor, of one kind or all, locked as by `lock_row`.

    Jobs that are just being claimed are left out.
    """
    query = sa.select(_jobs).where(_jobs.c.state == "queued", _jobs.c.created_by == created_by)
    if kind is not None:
        query = query.where(_jobs.c.kind == kind)
    locked = query.order_by(_jobs.c.id).limit(CANCELLED_AT_ONCE).with_for_update(skip_locked=True)
    return [job_of(row) for row in connection.execute(locked)]


def is_unheld(connection: sa.Connection, job_id: UUID) -> bool:
    """Whether the job has no living holder now."""
    query = sa.select(_jobs.c.id).where(_jobs.c.id == job_id, is_free(database_time(connection)))
    return connection.execute(query).first() is not None


def request_cancellation(connection: sa.Connection, job: Job, actor: str) -> Job:
    """Record that a person cancels the job."""
    values = {"cancelled_at": database_time(connection), "cancelled_by": actor}
    change = sa.update(_jobs).where(_jobs.c.id == job.id).values(**values).returning(_jobs)
    write_audit(connection, actor, "jobs.cancel", str(job.id), {"kind": job.kind, "state": job.state})
    return job_of(connection.execute(change).one())


def _ending(connection: sa.Connection, state: JobState) -> dict[str, Any]:
    return {"state": state, "finished_at": database_time(connection)}


def _write_end(connection: sa.Connection, job: Job, actor: str) -> None:
    """Write the result to the audit log, which has a cancellation since its request."""
    if job.state == "cancelled":
        return
    note_job(connection, job)
    verb = "succeed" if job.state == "succeeded" else "fail"
    write_audit(connection, actor, f"jobs.{verb}", str(job.id), {"kind": job.kind, "attempts": job.attempts})
