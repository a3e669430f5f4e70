"""Queries on jobs, jobs from rows of their table, and changes by the holder of a job.

A change by a holder is rejected when a newer claim exists or the job has ended.
"""

import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.jobs import Job, JobsState
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.schema import tables
from lifelong_core.values.control_characters import escape_controls
from lifelong_core.values.errors import ConflictError, LifelongError, NotFoundError

LONGEST_TEXTS = {"message": 2000, "field": 200, "hint": 1000}
"""Largest numbers of characters of an error's texts."""
_LONGEST_HOLDER = 128

_ARTIFACT = re.compile(r'"(?:labelled_set|upload|result|report)":"([0-9a-f]{64})"')
"""Matches digests of the job's artifacts in payloads and results, by their keys."""
_UPLOAD = re.compile(r'"upload":"([0-9a-f]{64})"')

_jobs = tables.jobs


def claimable(
    moment: datetime, kinds: Collection[str] | None = None, except_kinds: Collection[str] = ()
) -> sa.Select[Any]:
    """Query for the oldest job without a holder at this time of the database.

    Args:
        moment: time of the database.
        kinds: kinds of the job; None: all.
        except_kinds: kinds that are left out.
    """
    query = sa.select(_jobs).where(is_free(moment))
    if kinds is not None:
        query = query.where(_jobs.c.kind.in_(kinds))
    if except_kinds:
        query = query.where(_jobs.c.kind.not_in(except_kinds))
    return query.order_by(_jobs.c.id).limit(1)


def is_free(moment: datetime) -> sa.ColumnElement[bool]:
    """Condition: the job has no living holder at this time of the database."""
    over = sa.or_(_jobs.c.held_until <= moment, _jobs.c.held_from > moment)
    return sa.or_(_jobs.c.state == "queued", sa.and_(_jobs.c.state == "running", over))


def state_of_jobs(connection: sa.Connection, moment: datetime) -> JobsState:
    """Counts of the jobs at this time of the database."""
    jobs, count = _jobs.c, sa.func.count()
    since = sa.case((jobs.state == "queued", jobs.created_at), else_=jobs.held_until)
    free, begun = is_free(moment), jobs.state == "running"
    waits = sa.select(jobs.kind, count, sa.func.min(since)).where(free).group_by(jobs.kind)
    waiting = connection.execute(waits).all()
    first = {kind: moment for kind, _, moment in waiting}
    running = connection.execute(sa.select(count).where(begun, ~free)).scalar_one()
    failed = sa.select(jobs.kind, sa.func.max(jobs.finished_at)).where(jobs.state == "failed")
    failures = connection.execute(failed.group_by(jobs.kind)).all()
    return JobsState(
        waiting=sum(number for _, number, _ in waiting),
        waiting_since=min(first.values(), default=None),
        waiting_since_by_kind=first,
        running=running,
        last_failures={row[0]: row[1] for row in failures},
    )


def claim_values(
    moment: datetime, lease_seconds: float, holder: str, *, attempts: int, token: int
) -> dict[str, Any]:
    """Columns that a claim at this time of the database changes."""
    return {
        "state": "running",
        "attempts": attempts,
        "token": token,
        "holder": holder[:_LONGEST_HOLDER],
        "started_at": moment,
        **claim_of(moment, lease_seconds),
    }


def claim_of(moment: datetime, lease_seconds: float) -> dict[str, datetime]:
    """Start and end of a claim that is made or renewed at this time of the database."""
    lease = timedelta(seconds=lease_seconds)
    return {"held_from": moment - lease, "held_until": moment + lease}


def ended_before(moment: datetime) -> sa.ColumnElement[bool]:
    """Condition: the job ended before that time."""
    return _jobs.c.finished_at < moment


def artifacts_of(job: Job) -> set[str]:
    """Digests of the artifacts of a job except its checkpoint, even if its documents are damaged."""
    return set(_ARTIFACT.findall(f"{job.payload_document} {job.result_document}"))


def upload_of(job: Job) -> str | None:
    """Digest of the archive of images that was uploaded for a job; None: there is none."""
    found = _UPLOAD.search(job.payload_document)
    return None if found is None else found[1]


def ended_with_remains() -> sa.Select[Any]:
    """Query for the jobs that have ended and had an upload, or have a checkpoint."""
    remains = (
        _jobs.c.payload.contains('"upload":"'),
        _jobs.c.checkpoint.is_not(None),
        _jobs.c.spare_checkpoint.is_not(None),
    )
    return sa.select(_jobs).where(_jobs.c.finished_at.is_not(None), sa.or_(*remains))


def is_needed(connection: sa.Connection, digest: str, ended: datetime) -> bool:
    """Whether a model, its training, a calibration set, an evaluation, a fingerprint, the ranker, or a job that had not
    ended by this time refers to an artifact. Checkpoints belong to one job each: see `following`."""
    evaluations, trainings = tables.evaluations.c, tables.trainings.c
    needing = (
        sa.select(tables.models.c.id).where(tables.models.c.artifact == digest),
        sa.select(tables.calibration_sets.c.id).where(tables.calibration_sets.c.digest == digest),
        sa.select(evaluations.id).where(
            sa.or_(
                evaluations.result == digest,
                evaluations.report == digest,
                evaluations.labelled_set == digest,
            )
        ),
        sa.select(trainings.model_id).where(
            sa.or_(
                trainings.result == digest,
                trainings.test_set == digest,
                trainings.report == digest,
                trainings.report_page == digest,
            )
        ),
        sa.select(tables.fingerprints.c.task).where(tables.fingerprints.c.artifact == digest),
        sa.select(tables.rankers.c.digest).where(tables.rankers.c.digest == digest),
        sa.select(_jobs.c.id).where(
            sa.or_(_jobs.c.payload.contains(digest), _jobs.c.result.contains(digest)),
            sa.or_(_jobs.c.finished_at.is_(None), _jobs.c.finished_at >= ended),
        ),
    )
    return any(connection.execute(query.limit(1)).first() is not None for query in needing)


def job_of(row: Row) -> Job:
    """A job from a row of `jobs`."""
    return read_record(
        row,
        Job,
        payload_document=row.payload,
        result_document=row.result,
        error_document=row.error,
        progress_document=row.progress,
    )


def error_text(error: LifelongError | Mapping[str, str | None]) -> str:
    """An error as stored: message, field and hint, without control characters, each truncated to LONGEST_TEXTS."""
    given = vars(error) if isinstance(error, LifelongError) else error
    texts = {name: given.get(name) for name in LONGEST_TEXTS}
    kept = {
        name: None if text is None else _shown(str(text))[: LONGEST_TEXTS[name]]
        for name, text in texts.items()
    }
    return json.dumps(kept)


def _shown(text: str) -> str:
    return "\n".join(map(escape_controls, text.splitlines()))


def existing_job(row: Row | None, job_id: UUID) -> Job:
    """The job of a row.

    Raises:
        NotFoundError: there is no row.
    """
    if row is None:
        raise NotFoundError(f"there is no job {job_id}.", field="job", hint="List them: GET /v1/admin/jobs.")
    return job_of(row)


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
