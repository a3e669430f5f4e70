"""What jobs report while they run: progress, lines of a log for people, and checkpoints.

A checkpoint is an artifact from which the next attempt goes on. Every stored checkpoint is named in the row of its
job, as `checkpoint` or `spare_checkpoint`, from before its first byte until after its deletion: a process that dies
leaves none behind. Its bytes begin with the id of the job, so that no other job shares the artifact.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.jobs import Job, JobsState, JobState, LogLine
from lifelong_core.store.artifacts import Artifacts, digest_of
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.documents import values_text
from lifelong_core.store.engine.statements import ArtifactRepository
from lifelong_core.store.jobs.rows import change_job, existing_job, job_of, lock_job, state_of_jobs
from lifelong_core.store.schema import tables
from lifelong_core.values.control_characters import escape_controls
from lifelong_core.values.errors import ConflictError, NotFoundError, UnavailableError

LARGEST_PROGRESS = 8 * 2**10

_jobs = tables.jobs
_PREFIX = 16
"""Bytes of the id of the job."""
MOST_LINES = 1000
"""Lines that are kept of a job; the oldest are deleted."""
LONGEST_LINE = 500
"""Characters."""
_log = tables.job_log


class FollowedJobs(ArtifactRepository):
    """Shows jobs, and keeps what their work reports; each call is one short transaction."""

    def get(self, job_id: UUID) -> Job:
        """The job with that id.

        Raises:
            NotFoundError: there is none, or it was deleted after its retention time.
        """
        row = self._row(sa.select(_jobs).where(_jobs.c.id == job_id))
        return existing_job(row, job_id)

    def log(self, job_id: UUID, *, after: int | None = None, limit: int = 1000) -> list[LogLine]:
        """Lines of the log of a job, in their order.

        Args:
            job_id: of the job.
            after: number of a line: the first `limit` lines behind it. None: the last `limit` lines.
            limit: largest number of lines.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._database.read() as connection:
            return read_lines(connection, job_id, after=after, limit=limit)

    def list(self, kind: str | None = None, state: JobState | None = None, limit: int = 100) -> list[Job]:
        """The newest jobs, newest first.

        Args:
            kind: kind of the jobs; None: all.
            state: state of the jobs; None: all.
            limit: largest number of jobs.
        """
        query = sa.select(_jobs).order_by(_jobs.c.id.desc()).limit(limit)
        if kind is not None:
            query = query.where(_jobs.c.kind == kind)
        if state is not None:
            query = query.where(_jobs.c.state == state)
        return [job_of(row) for row in self._rows(query)]

    def state(self) -> JobsState:
        """Counts of all jobs now, by the clock of the database.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._database.read() as connection:
            return state_of_jobs(connection, database_time(connection))

    def report(self, job: Job, progress: Mapping[str, Any]) -> None:
        """Replace the progress of a job.

        Args:
            job: from the latest `claim` or `renew`.
            progress: a JSON object, e.g. of a `TrainingProgress`.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
            InvalidInputError: the progress cannot be written as JSON.
            PayloadTooLargeError: it takes more than LARGEST_PROGRESS bytes.
            UnavailableError: the database does not answer.
        """
        text = values_text(progress, most=LARGEST_PROGRESS, field="progress")
        with self._database.write() as connection:
            change_job(connection, job, {"progress": text})

    def append_log(self, job: Job, lines: Iterable[str]) -> None:
        """Append lines to the log of a job; it keeps the last MOST_LINES, each truncated to LONGEST_LINE characters.

        Args:
            job: from the latest `claim` or `renew`.
            lines: texts for people, without data of patients; a text with line breaks becomes several lines.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
            UnavailableError: the database does not answer.
        """
        with self._database.write() as connection:
            append_lines(connection, job, lines)

    def save_checkpoint(self, job: Job, content: bytes) -> Job:
        """Store the state from which the next attempt of a job goes on, in place of the former one.

        A checkpoint other than the former one is progress: the attempts count anew.

        Args:
            job: from the latest `claim` or `renew`.
            content: the state.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
            UnavailableError: the database or the artifacts do not answer; the former checkpoint holds.
        """
        return save_checkpoint(self._database, self._artifacts, job, content)

    def checkpoint(self, job: Job) -> bytes | None:
        """The latest checkpoint of a job; None: it begins anew.

        Raises:
            NotFoundError: the job or its artifact is missing.
            UnavailableError: the database or the artifacts do not answer.
        """
        while True:
            found = self.get(job.id)
            try:
                return load_checkpoint(self._artifacts, found)
            except NotFoundError:
                # A newer one has taken its place meanwhile, or it is lost.
                if self.get(job.id).checkpoint == found.checkpoint:
                    raise


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


def append_lines(connection: sa.Connection, job: Job, lines: Iterable[str]) -> None:
    """Append lines to the log of a job; delete its oldest beyond MOST_LINES.

    Raises:
        ConflictError: another claim is the latest, or the job has ended.
    """
    lock_job(connection, job)
    texts = [part for line in lines for part in _parts(line)][-MOST_LINES:]
    newest = sa.select(sa.func.max(_log.c.number)).where(_log.c.job_id == job.id)
    last = connection.execute(newest).scalar_one() or 0
    moment = database_time(connection)
    rows = [
        {"job_id": job.id, "number": number, "written_at": moment, "text": text}
        for number, text in enumerate(texts, start=last + 1)
    ]
    if not rows:
        return
    connection.execute(sa.insert(_log), rows)
    oldest = last + len(rows) - MOST_LINES
    connection.execute(sa.delete(_log).where(_log.c.job_id == job.id, _log.c.number <= oldest))


def read_lines(connection: sa.Connection, job_id: UUID, *, after: int | None, limit: int) -> list[LogLine]:
    """Lines of a job in their order: the first `limit` with a larger number than `after`; None: the last `limit`."""
    query = sa.select(_log).where(_log.c.job_id == job_id).limit(limit)
    if after is None:
        newest = connection.execute(query.order_by(_log.c.number.desc())).all()
        return [read_record(row, LogLine) for row in reversed(newest)]
    following = query.where(_log.c.number > after).order_by(_log.c.number)
    return [read_record(row, LogLine) for row in connection.execute(following)]


def delete_lines(connection: sa.Connection, job_id: UUID) -> None:
    """Delete the log of a job."""
    connection.execute(sa.delete(_log).where(_log.c.job_id == job_id))


def _parts(text: str) -> list[str]:
    """The lines of a text, each truncated, with characters replaced that no database stores or no terminal shows."""
    legal = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return [escape_controls(line)[:LONGEST_LINE] for line in legal.splitlines()]
