"""Changes of a job by its holder, rejected when a newer claim exists or the job has ended."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from lifelong_core.store.engine.columns import Row
from lifelong_core.store.jobs.records import Job
from lifelong_core.store.jobs.rows import job_of
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError

_jobs = tables.jobs


def change_job(connection: sa.Connection, job: Job, values: Mapping[str, Any]) -> Job:
    """Change a job, provided that its claim is still the latest.

    Raises:
        ConflictError: another claim is the latest, or the job has ended.
    """
    change = sa.update(_jobs).where(*_held(job)).values(**values).returning(_jobs)
    return job_of(_found(job, connection.execute(change).one_or_none()))


def lock_job(connection: sa.Connection, job: Job) -> Job:
    """The present state of a job, which no other transaction changes before the end of this one.

    Raises:
        ConflictError: another claim is the latest, or the job has ended.
    """
    query = sa.select(_jobs).where(*_held(job)).with_for_update()
    return job_of(_found(job, connection.execute(query).one_or_none()))


def _held(job: Job) -> tuple[sa.ColumnElement[bool], ...]:
    return _jobs.c.id == job.id, _jobs.c.token == job.token, _jobs.c.state == "running"


def _found(job: Job, row: Row | None) -> Row:
    if row is None:
        raise ConflictError(
            f"the job {job.id} was lost: its claim by {job.holder} has expired.",
            field="job",
            hint="Nothing was written; another process continues it.",
        )
    return row
