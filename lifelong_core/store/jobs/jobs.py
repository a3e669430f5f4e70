"""Jobs: long work that a request submits and a monitor runs.

A claim holds a job for a limited time; the holder renews it while it works. After the holder dies, the job is claimed
again, up to MOST_ATTEMPTS times. Each claim gets a larger token, and the transaction that ends a job compares the
token, so that a holder without the claim cannot change the job. Progress, log lines and checkpoints are fenced in the
same way. Attempts count anew from each checkpoint: a long job that makes progress survives any number of restarts.

As with leases, the database's clock decides only when another process may claim a job. A claim from the future comes
from a clock that was set back, and counts as expired. A late holder may still end a job without a newer claim.

The audit log records submissions, cancellations and results, not claims.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from io import BytesIO
from typing import Any, BinaryIO
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.jobs import Job, JobState
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.artifacts import digest_of_file
from lifelong_core.store.engine.clock import database_time, days_before, now
from lifelong_core.store.engine.deletion import delete_rows
from lifelong_core.store.engine.documents import values_text
from lifelong_core.store.engine.leases import this_process
from lifelong_core.store.jobs.following import FollowedJobs, delete_lines, remove_checkpoints
from lifelong_core.store.jobs.rows import (
    artifacts_of,
    change_job,
    claim_of,
    claim_values,
    claimable,
    ended_before,
    ended_with_remains,
    error_text,
    is_needed,
    job_of,
    upload_of,
)
from lifelong_core.store.jobs.transitions import (
    MOST_ATTEMPTS,
    end_free,
    end_held,
    end_unclaimed,
    find_or_insert_job,
    is_unheld,
    lock_queued,
    lock_row,
    request_cancellation,
)
from lifelong_core.store.lifecycle.retention import ACTOR
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import (
    ConflictError,
    InvalidInputError,
    LifelongError,
    UnavailableError,
)
from lifelong_core.values.names import check_name

LONGEST_KIND = 32
LARGEST_RESULT = 2**20

_jobs = tables.jobs


class Jobs(FollowedJobs):
    """Submits, claims, follows and ends jobs by short transactions."""

    def submit(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        labelled_set: bytes | None = None,
        upload: BinaryIO | None = None,
        actor: str,
        within: Callable[[sa.Connection, UUID], None] | None = None,
    ) -> Job:
        """Submit a job, or return the identical job of the same actor that is still queued.

        A labelled set or an upload is stored only after its job, so that it is always deleted with the job. Until it is
        stored, the job cannot be claimed; if this process dies before, the job fails after SENDING_SECONDS, because the
        artifact is missing.

        Args:
            kind: a legal name of at most 32 characters.
            payload: a JSON object for the process that runs the job.
            labelled_set: becomes an artifact, whose digest is added to the payload as `labelled_set`; kept as long as
                the job.
            upload: archive of images; becomes an artifact, whose digest is added to the payload as `upload`; deleted
                when the job has ended.
            actor: name for the audit log.
            within: is called with the id of the job in the transaction that adds it; an error there leaves no job.

        Raises:
            InvalidInputError: the kind is not legal, or the payload cannot be written as JSON.
            TooManyRequestsError: the actor has MOST_QUEUED queued jobs.
            PayloadTooLargeError: the payload takes more than LARGEST_PAYLOAD bytes.
            UnavailableError: database or artifacts do not answer. If only the artifacts do not, the job has failed; if
                the database fails after the artifact was stored, the job still runs, after SENDING_SECONDS.
            ConflictError: storing the artifact took longer than SENDING_SECONDS.
        """
        if len(check_name(kind, field="kind")) > LONGEST_KIND:
            raise InvalidInputError(f"expected at most {LONGEST_KIND} characters.", field="kind")
        file = upload if labelled_set is None else BytesIO(labelled_set)
        holder = None if file is None else this_process()
        if file is not None:
            payload = {**payload, "upload" if labelled_set is None else "labelled_set": digest_of_file(file)}
        with self._database.write() as connection:
            job = find_or_insert_job(connection, kind, payload, actor=actor, holder=holder)
            if within is not None:
                within(connection, job.id)
        if file is None or job.state == "queued":
            return job
        try:
            self._artifacts.put_file(file)
        except UnavailableError as error:
            # If this write fails too, a later claim fails the job, because the artifact is missing.
            with suppress(UnavailableError, ConflictError):
                self.fail(job, error)
            raise
        return self.release(job)

    def claim(
        self,
        holder: str,
        *,
        lease_seconds: float,
        kinds: Collection[str] | None = None,
        except_kinds: Collection[str] = (),
    ) -> Job | None:
        """Claim the oldest job that waits or whose holder died.

        A job without attempts left fails instead, and one whose cancellation was requested is cancelled.

        Args:
            holder: name of the claiming process, shown to people; at most 128 characters.
            lease_seconds: duration of the claim, unless it is renewed.
            kinds: kinds of the job; None: all.
            except_kinds: kinds that are left out.

        Returns:
            The job, running; None: no job waits.

        Raises:
            UnavailableError: the database does not answer.
        """
        while self._is_something_to_do(kinds, except_kinds):
            with self._database.write() as connection:
                moment = database_time(connection)
                # A row that another claim has locked counts as claimed (PostgreSQL; SQLite has one writer).
                query = claimable(moment, kinds, except_kinds).with_for_update(skip_locked=True)
                row = connection.execute(query).one_or_none()
                if row is None:
                    return None
                if row.attempts < MOST_ATTEMPTS and row.cancelled_at is None:
                    values = claim_values(
                        moment, lease_seconds, holder, attempts=row.attempts + 1, token=row.token + 1
                    )
                    change = sa.update(_jobs).where(_jobs.c.id == row.id).values(values).returning(_jobs)
                    return job_of(connection.execute(change).one())
                ended = end_unclaimed(connection, job_of(row), actor=holder)
            self._after_end(ended)
        return None

    def renew(self, job: Job, *, lease_seconds: float) -> Job:
        """Renew a claim from now on.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
            UnavailableError: the database does not answer; the claim lasts until its present end.
        """
        with self._database.write() as connection:
            moment = database_time(connection)
            return change_job(connection, job, claim_of(moment, lease_seconds))

    def release(self, job: Job) -> Job:
        """Return a job to the queue, as if this attempt was never started, because its holder must stop.

        One whose cancellation was requested is cancelled instead.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
            UnavailableError: the database does not answer; the claim lasts until its present end.
        """
        values = {"state": "queued", "attempts": _jobs.c.attempts - 1, "started_at": None}
        with self._database.write() as connection:
            released = change_job(connection, job, values)
            if released.cancelled_at is None:
                return released
            ended = end_free(connection, released, "cancelled")
        self._after_end(ended)
        return ended

    def cancel(self, job_id: UUID, *, actor: str) -> Job:
        """Cancel a job: one without a holder at once, a running one when its holder sees `cancelled_at`.

        A running job may still end otherwise before that.

        Args:
            job_id: of the job.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is no such job.
            ConflictError: it has ended.
            UnavailableError: the database does not answer.
        """
        with self._database.write() as connection:
            job = lock_row(connection, job_id)
            if job.finished_at is not None:
                raise ConflictError(
                    f"the job has ended: {job.state}.", field="job", hint="Only waiting and running jobs can."
                )
            if job.cancelled_at is None:
                job = request_cancellation(connection, job, actor)
            if not is_unheld(connection, job_id):
                return job
            ended = end_free(connection, job, "cancelled")
        self._after_end(ended)
        return ended

    def cancel_queued(self, created_by: str, *, kind: str | None = None, actor: str) -> int:
        """Cancel the queued jobs that one actor has submitted; those without a holder end at once.

        Args:
            created_by: the actor who submitted them.
            kind: kind of the jobs; None: all.
            actor: name for the audit log.

        Returns:
            Number of cancelled jobs.

        Raises:
            UnavailableError: the database does not answer; some may be cancelled.
        """
        cancelled = 0
        while True:
            with self._database.write() as connection:
                found = lock_queued(connection, created_by, kind)
                ended = [
                    end_free(connection, request_cancellation(connection, job, actor), "cancelled")
                    for job in found
                ]
            for job in ended:
                self._after_end(job)
            cancelled += len(ended)
            if not ended:
                return cancelled

    def end_cancelled(self, job: Job) -> Job:
        """End a job whose cancellation was requested, after its work was stopped.

        Args:
            job: from the latest `claim` or `renew`.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
            UnavailableError: the database does not answer.
        """
        return self._end(job, state="cancelled")

    def succeed(self, job: Job, result: Mapping[str, Any]) -> Job:
        """End a job with its result.

        Args:
            job: from the latest `claim` or `renew`.
            result: a JSON object.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
            InvalidInputError: the result cannot be written as JSON; the job is unchanged.
            PayloadTooLargeError: the result takes more than LARGEST_RESULT bytes; the job is unchanged.
        """
        text = values_text(result, most=LARGEST_RESULT, field="result")
        return self._end(job, state="succeeded", result=text)

    def fail(self, job: Job, error: LifelongError | Mapping[str, str | None]) -> Job:
        """End a job with an error; it is not tried again.

        Args:
            job: from the latest `claim` or `renew`.
            error: a LifelongError, or its message, field and hint; long texts are truncated.

        Raises:
            ConflictError: another process has claimed it, or it has ended.
        """
        return self._end(job, state="failed", error=error_text(error))

    def remove_remains(self) -> None:
        """Delete the uploads and checkpoints of ended jobs that the end of a job could not; harmless to repeat.

        Raises:
            UnavailableError: the database or the artifacts do not answer.
        """
        with self._database.read() as connection:
            jobs = [job_of(row) for row in connection.execute(ended_with_remains())]
        self._remove_remains(jobs)

    def delete_expired(self, days: int | None, today: date) -> int:
        """Delete the jobs that ended more than `days` whole days before `today`, with their logs; harmless to repeat.

        Artifacts that only these jobs refer to are deleted too. A set that is sent again during its deletion may be
        missing when its new job starts, which then fails.

        Args:
            days: retention of jobs in days; None: unlimited.
            today: the present UTC day.

        Returns:
            Number of deleted jobs.

        Raises:
            UnavailableError: the database or the artifacts do not answer; the next call deletes the rest.
        """
        if days is None:
            return 0
        before = datetime.combine(days_before(today, days), datetime.min.time(), UTC)
        with self._database.read() as connection:
            jobs = [job_of(row) for row in connection.execute(sa.select(_jobs).where(ended_before(before)))]
            digests = sorted({digest for job in jobs for digest in artifacts_of(job)})
            unneeded = [digest for digest in digests if not is_needed(connection, digest, before)]
        if not jobs:
            return 0
        # Before the rows, because only they refer to the artifacts.
        for digest in unneeded:
            self._artifacts.remove(digest)
        for job in jobs:
            remove_checkpoints(self._database, self._artifacts, job)
            # A transaction for each log, so that other writers wait only briefly.
            with self._database.write() as connection:
                delete_lines(connection, job.id)
        with self._database.write() as connection:
            deleted = delete_rows(connection, _jobs, [(job.id,) for job in jobs])
            # None: another monitor deleted it first.
            if deleted:
                details = {"jobs": deleted, "ended_before": before.isoformat()}
                write_audit(connection, ACTOR, "jobs.expire", "jobs", details)
        return deleted

    def _end(self, job: Job, *, state: JobState, **outcome: str) -> Job:
        with self._database.write() as connection:
            ended = end_held(connection, job, actor=job.holder or "", state=state, **outcome)
        self._after_end(ended)
        return ended

    def _after_end(self, job: Job) -> None:
        # The job has ended, whatever becomes of its upload: a later `remove_remains` deletes it.
        with suppress(UnavailableError):
            self._remove_remains([job])

    def _remove_remains(self, jobs: Collection[Job]) -> None:
        """Delete checkpoints and uploads of jobs that have ended, except uploads that another job still needs."""
        for job in jobs:
            remove_checkpoints(self._database, self._artifacts, job)
        for digest in sorted({digest for job in jobs if (digest := upload_of(job)) is not None}):
            with self._database.read() as connection:
                needed = is_needed(connection, digest, now())
            if not needed:
                self._artifacts.remove(digest)

    def _is_something_to_do(self, kinds: Collection[str] | None, except_kinds: Collection[str]) -> bool:
        """Whether a job is claimable; read without SQLite's write lock, which the log needs."""
        with self._database.read() as connection:
            query = claimable(database_time(connection), kinds, except_kinds)
            return connection.execute(query).first() is not None
