"""Rows of jobs: which can be claimed, and what is read from and written to them."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lifelong_core.errors import LifelongError
from lifelong_core.store import tables
from lifelong_core.store.design_records import Job
from lifelong_core.store.rows import Row

LONGEST_TEXTS = {"message": 2000, "field": 200, "mend": 1000}
"""Characters of an error that are kept."""

_ARTIFACT = re.compile(r'"(?:labelled_set|result|report)":"([0-9a-f]{64})"')
"""In payloads and results: what is named so is the digest of an artifact that belongs to the job."""

_jobs = tables.jobs


def claimable(moment: datetime) -> sa.Select[Any]:
    """The oldest job that nobody has at that time of the database, if there is one."""
    over = sa.or_(_jobs.c.held_until <= moment, _jobs.c.held_from > moment)
    free = sa.or_(_jobs.c.state == "queued", sa.and_(_jobs.c.state == "running", over))
    return sa.select(_jobs).where(free).order_by(_jobs.c.id).limit(1)


def ended_before(moment: datetime) -> sa.ColumnElement[bool]:
    """Jobs that ended before that time."""
    return sa.and_(_jobs.c.state.in_(("succeeded", "failed")), _jobs.c.finished_at < moment)


def artifacts_of(job: Job) -> set[str]:
    """Digests of the artifacts that belong to a job, also to one whose documents are damaged."""
    return set(_ARTIFACT.findall(f"{job.payload_document} {job.result_document}"))


def is_needed(connection: sa.Connection, digest: str, ended: datetime) -> bool:
    """Whether an artifact is named by anything but jobs that ended before that time."""
    needing = (
        sa.select(tables.models.c.id).where(tables.models.c.artifact == digest),
        sa.select(tables.calibration_sets.c.id).where(tables.calibration_sets.c.digest == digest),
        sa.select(_jobs.c.id).where(
            sa.or_(_jobs.c.payload.contains(digest), _jobs.c.result.contains(digest)),
            sa.or_(_jobs.c.finished_at.is_(None), _jobs.c.finished_at >= ended),
        ),
    )
    return any(connection.execute(query.limit(1)).first() is not None for query in needing)


def job_of(row: Row) -> Job:
    """A row of `jobs`."""
    return Job(
        id=row.id,
        kind=row.kind,
        payload_document=row.payload,
        state=row.state,
        attempts=row.attempts,
        created_at=row.created_at,
        created_by=row.created_by,
        started_at=row.started_at,
        finished_at=row.finished_at,
        result_document=row.result,
        error_document=row.error,
        holder=row.holder,
        token=row.token,
    )


def error_text(error: LifelongError | Mapping[str, str | None]) -> str:
    """What went wrong as the database keeps it: message, field and mend, each no longer than LONGEST_TEXTS."""
    given = vars(error) if isinstance(error, LifelongError) else error
    texts = {name: given.get(name) for name in LONGEST_TEXTS}
    kept = {name: None if text is None else str(text)[: LONGEST_TEXTS[name]] for name, text in texts.items()}
    return json.dumps(kept)
