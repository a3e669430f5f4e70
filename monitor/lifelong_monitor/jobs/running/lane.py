"""A lane of the runner: claims jobs of some kinds and runs them one at a time, in a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.jobs import TRAINING_KINDS
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.store import Job, Store
from lifelong_core.store.engine.leases import this_process
from lifelong_core.store.jobs.transitions import MOST_ATTEMPTS
from lifelong_core.values.errors import ConflictError, InvalidInputError, LifelongError, UnavailableError
from lifelong_monitor.jobs.running.attempt import Attempt
from lifelong_monitor.jobs.running.limits import disk_error, remove_work_folder
from lifelong_monitor.jobs.running.metrics import JobMetrics, JobOutcome
from lifelong_monitor.jobs.running.outcome import Outcome

log = logging.getLogger(__name__)

FINISH_AGAIN_SECONDS = 1.0
"""A job whose end could not be recorded is tried again after this time."""


@dataclass(frozen=True)
class Slot:
    """The jobs of a lane, and their device.

    Args:
        device: an entry of `training_devices`: trainings on this device. None: all other kinds.
    """

    device: str | None = None

    @property
    def name(self) -> str:
        """Name of the work, for logs."""
        return "jobs" if self.device is None else f"trainings on {self.device}"

    @property
    def kinds(self) -> Collection[str] | None:
        """Kinds that are claimed; None: all but `except_kinds`."""
        return None if self.device is None else TRAINING_KINDS

    @property
    def except_kinds(self) -> Collection[str]:
        """Kinds that are not claimed."""
        return TRAINING_KINDS if self.device is None else ()


class Lane:
    """Claims jobs and runs them until it is stopped.

    Args:
        slot: which jobs it claims.
        store: holds the jobs.
        settings: how often to look for jobs, and what one may use.
        metrics: count what became of them.
        stopping: when it is set, a running job's subprocess is ended, and the job given back.
        command: command of the subprocess of a job, whose id follows.
        on_success: called with each job that has succeeded here, in the thread of the lane.
    """

    def __init__(
        self,
        slot: Slot,
        store: Store,
        settings: Settings,
        metrics: JobMetrics,
        *,
        stopping: threading.Event,
        command: Sequence[str],
        on_success: Callable[[Job], None],
    ) -> None:
        self._slot = slot
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._command = command
        self._on_success = on_success
        self._stopping = stopping
        self._is_away = False
        self._thread = BackgroundThread(slot.name, self._run, stopping=stopping)

    def start(self) -> None:
        """Begin to look for jobs."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait at most this long for the end, and return whether it came."""
        return self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping.wait(self._settings.job_poll_seconds):
            try:
                while not self._stopping.is_set() and self._run_next():
                    pass
                self._is_away = False
            except UnavailableError as error:
                # Said once; the cycles say it, too.
                if not self._is_away:
                    log.warning("no %s at present: %s", self._slot.name, error)
                self._is_away = True
            except Exception as error:  # whatever is wrong with one job, the next ones get their turn
                unexpected = None if isinstance(error, LifelongError) else error
                log.error("a job could not be run: %s", error, exc_info=unexpected)  # noqa: TRY400

    def _run_next(self) -> bool:
        """Run the job that waits longest; False: none waits."""
        seconds, slot = self._settings.lease_seconds, self._slot
        claimed_at = time.monotonic()
        job = self._store.jobs.claim(
            this_process(), lease_seconds=seconds, kinds=slot.kinds, except_kinds=slot.except_kinds
        )
        if job is None:
            return False
        log.info("job %s (%s): attempt %d", job.id, job.kind, job.attempts)
        with self._metrics.running(job.kind) as ending:
            ending.outcome = self._attempt(job, claimed_at + seconds)
            if ending.outcome != "again":
                remove_work_folder(self._settings, job.id)
        return True

    def _attempt(self, job: Job, claim_ends_at: float) -> JobOutcome:
        attempt = Attempt(self._store, self._settings, job, self._command, self._slot.device, self._stopping)
        watched, outcome = attempt.run(claim_ends_at)
        is_passing = watched in ("lost", "stopped") or (outcome is not None and outcome.is_passing)
        if not is_passing or (outcome is not None and disk_error(self._settings) is not None):
            # Before the end is recorded: a database on the same full disk needs the space.
            remove_work_folder(self._settings, job.id)
        if watched == "stopped":
            self._give_back(job)
        if watched == "cancelled":
            return self._persist(job, partial(self._record_cancellation, job))
        if outcome is None:
            return "again"
        if outcome.error is not None and outcome.is_passing:
            # Nothing is wrong with the job: it is begun again when the claim is over, unless this was the last attempt.
            log.warning("job %s (%s): %s", job.id, job.kind, outcome.error.message)
            present = self._store.jobs.get(job.id)
            if present.attempts < MOST_ATTEMPTS:
                return "again"
            since = "" if present.checkpoint is None else " from its last checkpoint"
            said = (
                f"it was started {present.attempts} times{since} and never ended; the last time:"
                f" {outcome.error.message}"
            )
            outcome = replace(outcome, error=replace(outcome.error, message=said))
        return self._finish(job, outcome)

    def _finish(self, job: Job, outcome: Outcome) -> JobOutcome:
        try:
            return self._persist(job, partial(self._record, job, outcome))
        except InvalidInputError as error:  # the result is too large
            return self._persist(job, partial(self._record, job, Outcome.of_error(error)))

    def _persist(self, job: Job, record: Callable[[], JobOutcome]) -> JobOutcome:
        """Record the end of a job; while the database is away, wait for it: the work is done."""
        while True:
            try:
                return record()
            except ConflictError as error:
                log.warning("%s", error)
                return "again"
            except UnavailableError as error:
                log.warning("the end of job %s could not be recorded: %s", job.id, error)
                if self._stopping.wait(FINISH_AGAIN_SECONDS):
                    return "again"

    def _record(self, job: Job, outcome: Outcome) -> JobOutcome:
        if outcome.error is not None:
            self._store.jobs.fail(job, outcome.error.to_document())
            log.warning("job %s (%s): failed. %s", job.id, job.kind, outcome.error.message)
            return "failed"
        self._store.jobs.succeed(job, outcome.result or {})
        log.info("job %s (%s): succeeded", job.id, job.kind)
        self._on_success(job)
        return "succeeded"

    def _record_cancellation(self, job: Job) -> JobOutcome:
        self._store.jobs.end_cancelled(job)
        log.info("job %s (%s): cancelled", job.id, job.kind)
        return "cancelled"

    def _give_back(self, job: Job) -> None:
        try:
            self._store.jobs.release(job)
            log.info("job %s (%s): given back", job.id, job.kind)
        except (ConflictError, UnavailableError) as error:
            log.warning("job %s could not be given back: %s", job.id, error)
