"""How jobs begin, within the transaction of the caller."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from lifelong_core.entities.jobs import Job
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.documents import values_text
from lifelong_core.store.jobs.rows import claim_values, job_of
from lifelong_core.store.log.identifiers import new_prediction_id
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
