"""Looks how it stands with all jobs, whatever becomes of the runner, and never in the way of a scrape."""

import threading

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.store import Store
from lifelong_core.store.jobs.records import TRAINING_KINDS
from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.exporter.job_metrics import OTHER_KIND, JobMetrics
from lifelong_monitor.jobs.kinds import KINDS

LOOK_SECONDS = 5.0


class StateWatch:
    """Shows how it stands with all jobs, in a thread of its own: a database that hangs stops nothing else.

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
