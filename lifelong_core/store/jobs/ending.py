"""How jobs end: by their holder, without one, or cancelled; each within the transaction of the caller."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.jobs import Job, JobState
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.jobs.rows import change_job, error_text, existing_job, is_free, job_of
from lifelong_core.store.schema import tables

MOST_ATTEMPTS = 3
CANCELLED_AT_ONCE = 50
"""Jobs that one transaction cancels, so that other writers wait only briefly."""

_jobs = tables.jobs

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
    verb = "succeed" if job.state == "succeeded" else "fail"
    write_audit(connection, actor, f"jobs.{verb}", str(job.id), {"kind": job.kind, "attempts": job.attempts})
