"""What jobs show of themselves while they run: progress, log lines and checkpoints."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.documents import values_text
from lifelong_core.store.jobs.checkpoints import load_checkpoint, save_checkpoint
from lifelong_core.store.jobs.fencing import change_job
from lifelong_core.store.jobs.job_log import append_lines, read_lines
from lifelong_core.store.jobs.records import Job, JobsState, JobState, LogLine
from lifelong_core.store.jobs.rows import existing_job, job_of, state_of_jobs
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError

LARGEST_PROGRESS = 8 * 2**10

_jobs = tables.jobs


class FollowedJobs:
    """Shows jobs, and keeps what their work reports; each call is one short transaction."""

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        self._database = database
        self._artifacts = artifacts

    def get(self, job_id: UUID) -> Job:
        """The job with that id.

        Raises:
            NotFoundError: there is none, or it was deleted after its retention time.
        """
        with self._database.read() as connection:
            row = connection.execute(sa.select(_jobs).where(_jobs.c.id == job_id)).one_or_none()
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
        with self._database.read() as connection:
            return [job_of(row) for row in connection.execute(query)]

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
