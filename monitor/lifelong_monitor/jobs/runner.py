"""Runs jobs beside the cycles: in a thread of its own, one at a time, each as a subprocess that it watches over."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import Literal, TypeAlias

from lifelong_core.errors import (
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    LifelongError,
    UnavailableError,
)
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.settings import Settings
from lifelong_core.store import Job, Store
from lifelong_core.store.engine.leases import this_process
from lifelong_core.store.jobs.jobs import MOST_ATTEMPTS
from lifelong_monitor.exporter.job_metrics import JobMetrics, JobOutcome
from lifelong_monitor.jobs.outcome import JobError, Outcome
from lifelong_monitor.jobs.parent_watchdog import ABANDONED
from lifelong_monitor.jobs.process import JobProcess
from lifelong_monitor.jobs.state_watch import StateWatch

log = logging.getLogger(__name__)

COMMANDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "local": (sys.executable, "-m", "lifelong_monitor.jobs"),
        "ray": (sys.executable, "-m", "lifelong_monitor.jobs.on_ray"),
    }
)
"""By `job_runner`, the command of the subprocess of a job; the id of the job follows. With ray, the subprocess submits
a task and waits for it; the runner watches either in the same way."""
LOOK_SECONDS = 0.1
"""How often is looked whether a running job has ended, or has to."""
FINISH_AGAIN_SECONDS = 1.0
"""A job whose end could not be recorded is tried again after this time."""
_RENEWALS = 3
"""Within the time of a claim: one may fail, and the next still comes in time."""

Watched: TypeAlias = Literal["ended", "late", "lost", "stopped"]


def check_job_runner(name: str) -> None:
    """Check that jobs can run there, without loading anything of it.

    Raises:
        ConfigurationError: it is ray, and ray is not installed.
    """
    if name == "ray" and find_spec("ray") is None:
        raise ConfigurationError(
            "jobs cannot run on Ray: it is not installed.",
            field="LIFELONG_JOB_RUNNER",
            hint='Install it: pip install "lifelong[ray]".',
        )


class JobRunner:
    """Claims jobs and runs them until it is stopped.

    Args:
        store: holds the jobs.
        settings: how often to look for jobs, and how long one may take.
        metrics: count what became of them, and show how it stands with all.
        stopping: when it is set, a running job's subprocess is ended, and the job given back.
        command: command of the subprocess of a job, whose id follows; None: that of `settings.job_runner`.
        on_success: called with each job that has succeeded here, in the thread of the runner.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        metrics: JobMetrics,
        *,
        stopping: threading.Event,
        command: Sequence[str] | None = None,
        on_success: Callable[[Job], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self._command = tuple(command or COMMANDS[settings.job_runner])
        self._on_success = on_success
        self._stopping = stopping
        self._is_away = False
        self._state = StateWatch(store, settings, metrics, stopping=stopping)
        self._thread = BackgroundThread("jobs", self._run, stopping=stopping)

    def start(self) -> None:
        """Begin to look for jobs."""
        self._state.start()
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Whether it comes to its end within this time. If not, others take over when the claim is over."""
        gone_at = time.monotonic() + seconds
        self._thread.join(seconds)
        self._state.join(max(0.0, gone_at - time.monotonic()))
        return not self._thread.is_alive

    def _run(self) -> None:
        while not self._stopping.wait(self._settings.job_poll_seconds):
            try:
                while not self._stopping.is_set() and self._run_next():
                    pass
                self._is_away = False
            except UnavailableError as error:
                # Said once; the cycles say it, too.
                if not self._is_away:
                    log.warning("no jobs at present: %s", error)
                self._is_away = True
            except Exception as error:  # whatever is wrong with one job, the next ones get their turn
                unexpected = None if isinstance(error, LifelongError) else error
                log.error("a job could not be run: %s", error, exc_info=unexpected)  # noqa: TRY400

    def _run_next(self) -> bool:
        """Run the job that waits longest; False: none waits."""
        seconds = self._settings.lease_seconds
        claimed_at = time.monotonic()
        job = self._store.jobs.claim(this_process(), lease_seconds=seconds)
        if job is None:
            return False
        log.info("job %s (%s): attempt %d", job.id, job.kind, job.attempts)
        with self._metrics.running(job.kind) as ending:
            ending.outcome = self._attempt(job, claimed_at + seconds)
        return True

    def _attempt(self, job: Job, claim_ends_at: float) -> JobOutcome:
        started = time.monotonic()
        with JobProcess((*self._command, str(job.id)), self._environment()) as process:
            watched = self._watch(job, process, started, claim_ends_at)
            # Before anything is told to the database: nobody may take the job over while this one goes on.
            process.end()
            outcome = _outcome_of(process) if watched == "ended" else None
        if watched == "late":
            limit = self._settings.job_time_limit_seconds
            outcome = Outcome(
                error=JobError(
                    f"it was ended because it took longer than {limit:g} s.",
                    "LIFELONG_JOB_TIME_LIMIT_SECONDS",
                    "Ask for less (fewer samples or replicates), or raise the limit of the monitor.",
                )
            )
        if watched == "stopped":
            self._give_back(job)
        if outcome is None:
            return "again"
        if outcome.error is not None and outcome.is_passing:
            # Nothing is wrong with the job: it is begun again when the claim is over, unless this was the last attempt.
            log.warning("job %s (%s): %s", job.id, job.kind, outcome.error.message)
            if job.attempts < MOST_ATTEMPTS:
                return "again"
            said = (
                f"it was started {job.attempts} times and never ended; the last time: {outcome.error.message}"
            )
            outcome = replace(outcome, error=replace(outcome.error, message=said))
        return self._finish(job, outcome)

    def _watch(self, job: Job, process: JobProcess, started: float, claim_ends_at: float) -> Watched:
        seconds = self._settings.lease_seconds
        renew_at = claim_ends_at - seconds + seconds / _RENEWALS
        process.hold(claim_ends_at - time.monotonic())
        while process.status is None:
            if self._stopping.wait(LOOK_SECONDS):
                return "stopped"
            now = time.monotonic()
            if now - started > self._settings.job_time_limit_seconds:
                return "late"
            if now < renew_at:
                continue
            renew_at = now + seconds / _RENEWALS
            try:
                self._store.jobs.renew(job, lease_seconds=seconds)
                claim_ends_at = now + seconds
                process.hold(claim_ends_at - time.monotonic())
            except ConflictError as error:
                log.warning("%s", error)
                return "lost"
            except UnavailableError as error:
                log.warning("the claim of job %s could not be renewed: %s", job.id, error)
                if time.monotonic() >= claim_ends_at:
                    return "lost"
        # Who stops a service may signal all of its processes: the subprocess can be gone before we know why.
        is_stopped = process.status == -signal.SIGTERM and self._stopping.wait(LOOK_SECONDS)
        return "stopped" if is_stopped else "ended"

    def _finish(self, job: Job, outcome: Outcome) -> JobOutcome:
        """Record the end of a job; while the database is away, wait for it: the work is done."""
        while True:
            try:
                return self._record(job, outcome)
            except InvalidInputError as error:
                outcome = Outcome.of_error(error)  # the result is too large
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

    def _give_back(self, job: Job) -> None:
        try:
            self._store.jobs.release(job)
            log.info("job %s (%s): given back", job.id, job.kind)
        except (ConflictError, UnavailableError) as error:
            log.warning("job %s could not be given back: %s", job.id, error)

    def _environment(self) -> dict[str, str]:
        """That of this process, so that the settings are the same, with the state that this process works on."""
        return {
            **os.environ,
            "LIFELONG_DATABASE_URL": self._settings.resolved_database_url,
            "LIFELONG_ARTIFACTS_URL": self._settings.resolved_artifacts_url,
            # Where it was, if it crashes outside of Python.
            "PYTHONFAULTHANDLER": "1",
        }


def _outcome_of(process: JobProcess) -> Outcome:
    """What a process told that ended by itself, or that it crashed."""
    status, outcome = process.status, process.outcome
    if status == ABANDONED:
        return Outcome.of_error(UnavailableError("this monitor gave no sign of life for too long."))
    if status == 0 and outcome is not None:
        return outcome
    how = f"with status {status}" if status else "without a word of what came out"
    if status is not None and status < 0:
        how = f"by signal {-status} ({signal.strsignal(-status)})"
        if -status == signal.SIGKILL:
            how += ", perhaps because the memory was full"
    report = process.report
    said = f" Its last words:\n{report}" if report else ""
    return Outcome(error=JobError(f"it crashed: its process ended {how}.{said}"))
