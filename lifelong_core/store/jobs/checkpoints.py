"""Checkpoints of jobs: artifacts from which the next attempt goes on.

Every stored checkpoint is named in the row of its job, as `checkpoint` or `spare_checkpoint`, from before its first
byte until after its deletion: none is left behind by a process that dies. Its bytes begin with the id of the job, so
that no other job shares the artifact.
"""

from contextlib import suppress

import sqlalchemy as sa

from lifelong_core.store.artifacts import Artifacts, digest_of
from lifelong_core.store.engine.database import Database
from lifelong_core.store.jobs.fencing import change_job, lock_job
from lifelong_core.store.jobs.records import Job
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, UnavailableError

_jobs = tables.jobs
_PREFIX = 16
"""Bytes of the id of the job."""


def save_checkpoint(database: Database, artifacts: Artifacts, job: Job, content: bytes) -> Job:
    """`Jobs.save_checkpoint`."""
    stored = job.id.bytes + content
    digest = digest_of(stored)
    with database.write() as connection:
        before = lock_job(connection, job)
    # The same checkpoint again is no progress: a job that dies again and again at one place runs out of attempts.
    if digest == before.checkpoint:
        return before
    if before.spare_checkpoint is not None:
        artifacts.remove(before.spare_checkpoint)
    with database.write() as connection:
        change_job(connection, job, {"spare_checkpoint": digest})
    try:
        artifacts.put(stored)
        values = {"checkpoint": digest, "spare_checkpoint": before.checkpoint, "attempts": 1}
        with database.write() as connection:
            changed = change_job(connection, job, values)
    except ConflictError:
        _remove_unnamed(database, artifacts, job, digest)
        raise
    if before.checkpoint is not None:
        with suppress(UnavailableError):  # it is the spare one, which the next call deletes
            artifacts.remove(before.checkpoint)
    return changed


def load_checkpoint(artifacts: Artifacts, job: Job) -> bytes | None:
    """The checkpoint of a job from its present row; None: it has none.

    Raises:
        NotFoundError: the artifact is missing.
        UnavailableError: the artifacts do not answer.
    """
    return None if job.checkpoint is None else artifacts.get(job.checkpoint)[_PREFIX:]


def remove_checkpoints(database: Database, artifacts: Artifacts, job: Job) -> None:
    """Delete the checkpoints of a job that has ended; harmless to repeat.

    Raises:
        UnavailableError: the database or the artifacts do not answer.
    """
    digests = {job.checkpoint, job.spare_checkpoint} - {None}
    if not digests:
        return
    for digest in digests:
        artifacts.remove(str(digest))
    ended = _jobs.c.id == job.id, _jobs.c.finished_at.is_not(None)
    with database.write() as connection:
        connection.execute(sa.update(_jobs).where(*ended).values(checkpoint=None, spare_checkpoint=None))


def _remove_unnamed(database: Database, artifacts: Artifacts, job: Job, digest: str) -> None:
    """Delete a checkpoint that was stored after the job had been lost, unless the new holder has the same one."""
    named = sa.or_(_jobs.c.checkpoint == digest, _jobs.c.spare_checkpoint == digest)
    with database.read() as connection:
        is_named = connection.execute(sa.select(_jobs.c.id).where(_jobs.c.id == job.id, named)).first()
    if is_named is None:
        artifacts.remove(digest)
