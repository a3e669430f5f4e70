"""One attempt at a job: its subprocess, watched until it ends or has to be ended."""

import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.jobs import TRAINING_KINDS
from lifelong_core.runtime.tracing import carried_context, span
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConflictError, NotFoundError, UnavailableError
from lifelong_monitor.jobs.running.context import DEVICE_VARIABLE
from lifelong_monitor.jobs.running.limits import GIBIBYTE, disk_error, memory_of_session
from lifelong_monitor.jobs.running.outcome import FREE_DISK, LESS_MEMORY, JobError, Outcome
from lifelong_monitor.jobs.running.process import JobProcess, outcome_of_process

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""Interval at which a running job is checked for its end and its limits."""
CHECK_SECONDS = 1.0
"""Interval at which its cancellation, its memory and the disk are checked."""
_RENEWALS = 3
"""Within the time of a claim: one may fail, and the next still comes in time."""

Watched: TypeAlias = Literal["ended", "late", "large", "full", "cancelled", "lost", "stopped"]


@dataclass(frozen=True)
class Attempt:
    """An attempt at a claimed job.

    Args:
        store: of the job.
        settings: limits of the job.
        job: with the token of the claim.
        command: of the subprocess; the id of the job follows.
        device: where it trains; None: it is no training.
        stopping: when it is set, the subprocess is ended.
    """

    store: Store
    settings: Settings
    job: Job
    command: Sequence[str]
    device: str | None
    stopping: threading.Event

    def run(self, claim_ends_at: float) -> tuple[Watched, Outcome | None]:
        """Do the work in a subprocess, which has ended when this returns.

        Args:
            claim_ends_at: time of the monotonic clock.

        Returns:
            Why it ended, and its outcome unless the job goes on elsewhere or was cancelled.
        """
        error = disk_error(self.settings) if self._is_training else None
        if error is not None:
            # What was trained so far is worth another attempt.
            return "ended", Outcome(error=JobError.of(error), is_passing=self.job.checkpoint is not None)
        with (
            span("job", job_id=str(self.job.id), kind=self.job.kind, attempt=self.job.attempts),
            JobProcess((*self.command, str(self.job.id)), self._environment()) as process,
        ):
            watched = self._watch(process, claim_ends_at)
            # Before the database is changed: no other monitor may claim the job while this subprocess runs.
            process.end()
            return watched, self._outcome(watched, process)

    @cached_property
    def _most_memory(self) -> int:
        """Read once: it may have to ask the control group of the process, and is compared each second."""
        return self.settings.resolved_job_memory_bytes

    @property
    def _is_training(self) -> bool:
        return self.job.kind in TRAINING_KINDS

    def _outcome(self, watched: Watched, process: JobProcess) -> Outcome | None:
        if watched == "ended":
            return outcome_of_process(process, is_resumable=self._is_training)
        if watched == "late":
            return Outcome(error=self._late())
        if watched == "full":
            return Outcome(error=self._full(), is_passing=self._has_checkpoint())
        return Outcome(error=self._large()) if watched == "large" else None

    def _watch(self, process: JobProcess, claim_ends_at: float) -> Watched:
        seconds, started = self.settings.lease_seconds, time.monotonic()
        renew_at, check_at = claim_ends_at - seconds + seconds / _RENEWALS, started + CHECK_SECONDS
        process.hold(claim_ends_at - started)
        while process.status is None:
            if self.stopping.wait(LOOK_SECONDS):
                return "stopped"
            now = time.monotonic()
            if now - started > self._limit_seconds:
                return "late"
            if now >= check_at:
                check_at = now + CHECK_SECONDS
                found = self._check(process)
                if found is not None:
                    return found
            if now < renew_at:
                continue
            renew_at = now + seconds / _RENEWALS
            try:
                self.store.jobs.renew(self.job, lease_seconds=seconds)
                claim_ends_at = now + seconds
                process.hold(claim_ends_at - time.monotonic())
            except ConflictError as error:
                log.warning("%s", error)
                return "lost"
            except UnavailableError as error:
                log.warning("the claim of job %s could not be renewed: %s", self.job.id, error)
                if time.monotonic() >= claim_ends_at:
                    return "lost"
        # A stop of the service may signal all of its processes: the subprocess may end before `stopping` is set.
        is_stopped = process.status == -signal.SIGTERM and self.stopping.wait(LOOK_SECONDS)
        return "stopped" if is_stopped else "ended"

    def _check(self, process: JobProcess) -> Watched | None:
        """Why the subprocess has to be ended now; None: it may go on."""
        if memory_of_session(process.pid) > self._most_memory:
            return "large"
        if self._is_training and disk_error(self.settings) is not None:
            return "full"
        try:
            present = self.store.jobs.get(self.job.id)
        except (UnavailableError, NotFoundError):  # `renew` says it
            return None
        is_ours = present.token == self.job.token and present.state == "running"
        return "cancelled" if is_ours and present.cancelled_at is not None else None

    @property
    def _limit_seconds(self) -> float:
        settings = self.settings
        return settings.training_time_limit_seconds if self._is_training else settings.job_time_limit_seconds

    def _has_checkpoint(self) -> bool:
        try:
            return self.store.jobs.get(self.job.id).checkpoint is not None
        except UnavailableError:  # the next attempt finds out
            return True

    def _late(self) -> JobError:
        name, less = (
            ("TRAINING", "epochs or images") if self._is_training else ("JOB", "samples or replicates")
        )
        return JobError(
            f"it was ended because it took longer than {self._limit_seconds:g} s.",
            f"LIFELONG_{name}_TIME_LIMIT_SECONDS",
            f"Ask for less (fewer {less}), or raise the limit of the monitor.",
        )

    def _large(self) -> JobError:
        limit = self._most_memory / GIBIBYTE
        return JobError(
            f"it was ended because its processes used more than {limit:.2g} GiB of memory.",
            "LIFELONG_JOB_MEMORY_BYTES",
            f"{LESS_MEMORY} Or raise the limit of the monitor.",
        )

    def _full(self) -> JobError:
        return JobError(
            f"it was ended because the disk of {self.settings.data_directory} had less than"
            f" {self.settings.job_disk_bytes / GIBIBYTE:.2g} GiB left.",
            "LIFELONG_JOB_DISK_BYTES",
            FREE_DISK,
        )

    def _environment(self) -> dict[str, str]:
        """The environment of this process, with the database and the artifacts that this process uses."""
        return {
            **os.environ,
            "LIFELONG_DATABASE_URL": self.settings.resolved_database_url,
            "LIFELONG_ARTIFACTS_URL": self.settings.resolved_artifacts_url,
            # Writes the stack of a crash outside of Python.
            "PYTHONFAULTHANDLER": "1",
            **{name.upper(): value for name, value in carried_context().items()},
        } | ({} if self.device is None else {DEVICE_VARIABLE: self.device})
