"""Runs jobs beside the cycles, each as a subprocess, one at a time in each lane; shows the state of all jobs."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.jobs import TRAINING_KINDS
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConfigurationError, UnavailableError
from lifelong_monitor.jobs.running.lane import Lane, Slot
from lifelong_monitor.jobs.running.limits import remove_ended
from lifelong_monitor.jobs.running.metrics import OTHER_KIND, JobMetrics
from lifelong_monitor.jobs.running.work import KINDS

log = logging.getLogger(__name__)

COMMANDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "local": (sys.executable, "-m", "lifelong_monitor.jobs"),
        "ray": (sys.executable, "-m", "lifelong_monitor.jobs.running.on_ray"),
    }
)
"""By `job_runner`, the command of the subprocess of a job; the id of the job follows. With ray, the subprocess submits
a task and waits for it; the runner watches either in the same way."""

LOOK_SECONDS = 5.0


def check_job_runner(name: str) -> None:
    """Check that a job runner can run jobs, without importing its library.

    Raises:
        ConfigurationError: it is ray, and ray is not installed.
    """
    if name == "ray" and find_spec("ray") is None:
        raise ConfigurationError(
            "jobs cannot run on Ray: it is not installed.",
            field="LIFELONG_JOB_RUNNER",
            hint='Install it, in the clone of lifelong: pip install -c constraints.txt -e ".[ray]".',
        )


class JobRunner:
    """Claims jobs and runs them until it is stopped: a lane for trainings on each device, and one for all other jobs.

    Args:
        store: holds the jobs.
        settings: how often to look for jobs, and what one may use.
        metrics: count what became of them, and show how it stands with all.
        stopping: when it is set, the subprocesses of running jobs are ended, and the jobs given back.
        command: command of the subprocess of a job, whose id follows; None: that of `settings.job_runner`.
        on_success: called with each job that has succeeded here, in the thread of its lane.
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
        self._state = StateWatch(store, settings, metrics, stopping=stopping)
        self._lanes = [
            Lane(
                slot,
                store,
                settings,
                metrics,
                stopping=stopping,
                command=tuple(command or COMMANDS[settings.job_runner]),
                on_success=on_success,
            )
            for slot in (Slot(), *map(Slot, settings.training_devices))
        ]

    def start(self) -> None:
        """Begin to look for jobs."""
        try:
            remove_ended(self._settings, self._store)
        except UnavailableError as error:
            log.warning("work folders of ended jobs stay until the next start: %s", error)
        self._state.start()
        for lane in self._lanes:
            lane.start()

    def join(self, seconds: float) -> bool:
        """Wait at most this long for the end; return whether it came. Else others take over when the claims expire."""
        gone_at = time.monotonic() + seconds
        are_done = [lane.join(max(0.0, gone_at - time.monotonic())) for lane in self._lanes]
        self._state.join(max(0.0, gone_at - time.monotonic()))
        return all(are_done)


class StateWatch:
    """Shows the state of all jobs, in a thread of its own: a database that hangs stops nothing else.

    Args:
        store: holds the jobs.
        settings: how long a job may take.
        metrics: show it.
        stopping: when it is set, the thread ends.
    """

    def __init__(
        self, store: Store, settings: Settings, metrics: JobMetrics, *, stopping: threading.Event
    ) -> None:
        self._store = store
        self._limits = {
            kind: settings.training_time_limit_seconds
            if kind in TRAINING_KINDS
            else settings.job_time_limit_seconds
            for kind in (*KINDS, OTHER_KIND)
        }
        self._metrics = metrics
        self._stopping = stopping
        self._thread = BackgroundThread("state of jobs", self._run, stopping=stopping)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for its end, at most this long: the store must stay open until then."""
        self._thread.join(seconds)

    def _run(self) -> None:
        self._look()
        while not self._stopping.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            state = self._store.jobs.state()
        except UnavailableError:  # the ticks count it, and the runner says it
            state = None
        self._metrics.show_state(state, time_limits=self._limits)
