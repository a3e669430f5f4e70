"""Metrics of the jobs that this monitor ran, and of all jobs that wait or failed."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lifelong_core.entities.jobs import JobsState
from lifelong_monitor.jobs.running.work import KINDS

JobOutcome: TypeAlias = Literal["succeeded", "failed", "cancelled", "again"]
"""`again`: it was not finished here, and is begun again, here or by another monitor."""
JOB_OUTCOMES: Final[tuple[JobOutcome, ...]] = get_args(JobOutcome)
OTHER_KIND = "other"
"""Label of kinds that only a newer version of the product knows."""
STATE_HOLDS_SECONDS = 60.0
"""After this time without an answer of the database, the state of all jobs is not shown."""


@dataclass
class JobEnding:
    """Outcome of a job; `again` unless it is set."""

    outcome: JobOutcome = "again"


class JobMetrics:
    """Counts jobs by kind and outcome; shows the last duration, the running job, and the jobs that wait or failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._state = _StateCollector()
        registry.register(self._state)
        self._jobs = Counter(
            "lifelong_jobs_total",
            "Jobs that this monitor ran since it started, by kind and outcome: succeeded, failed, cancelled, or again"
            " (it was interrupted and is begun again).",
            ("kind", "outcome"),
            registry=registry,
        )
        self._running = Gauge(
            "lifelong_jobs_running",
            "Jobs that this monitor runs now: a training on each device, and one other job.",
            ("kind",),
            registry=registry,
        )
        self._last_seconds = Gauge(
            "lifelong_job_last_duration_seconds",
            "Duration of the last job of the kind that this monitor ran to its end, in seconds.",
            ("kind",),
            registry=registry,
        )
        for kind in (*KINDS, OTHER_KIND):
            self._running.labels(kind)
            for outcome in JOB_OUTCOMES:
                # A counter that appears with its first event hides that event from increase().
                self._jobs.labels(kind, outcome)

    def show_state(self, state: JobsState | None, *, time_limits: Mapping[str, float]) -> None:
        """Show the state of all jobs, of this and other monitors, for STATE_HOLDS_SECONDS.

        Args:
            state: None: not known at present.
            time_limits: seconds that a job of this monitor may take, by kind.
        """
        self._state.shown = _Shown(state, time_limits, time.monotonic())

    @contextmanager
    def running(self, kind: str) -> Iterator[JobEnding]:
        """Show that a job runs during the block, and count its outcome."""
        label = _label(kind)
        ending, started = JobEnding(), time.monotonic()
        with self._running.labels(label).track_inprogress():
            try:
                yield ending
            finally:
                self._jobs.labels(label, ending.outcome).inc()
                if ending.outcome != "again":
                    self._last_seconds.labels(label).set(time.monotonic() - started)


@dataclass(frozen=True)
class _Shown:
    """State of all jobs at a time of the monotonic clock."""

    state: JobsState | None
    time_limits: Mapping[str, float]
    looked_at: float


class _StateCollector(Collector):
    """Turns the state of all jobs into gauges at every scrape."""

    shown: _Shown | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        shown = self.shown
        if shown is None:
            return
        limits = GaugeMetricFamily(
            "lifelong_job_time_limit_seconds",
            "Configured time that a job of the kind may take, in seconds.",
            labels=("kind",),
        )
        for kind, seconds in shown.time_limits.items():
            limits.add_metric((kind,), seconds)
        yield limits
        if shown.state is not None and time.monotonic() - shown.looked_at < STATE_HOLDS_SECONDS:
            yield from _gauges(shown.state)


def _gauges(state: JobsState) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily("lifelong_jobs_waiting", "Jobs that no monitor has claimed.", value=state.waiting)
    since = GaugeMetricFamily(
        "lifelong_job_waiting_since_timestamp_seconds",
        "When the job of the kind was asked for, or left by a monitor that died, that has waited longest; no value if"
        " none waits.",
        labels=("kind",),
    )
    for kind, moment in _by_label(state.waiting_since_by_kind, min).items():
        since.add_metric((kind,), moment.timestamp())
    yield since
    failed = GaugeMetricFamily(
        "lifelong_job_last_failure_timestamp_seconds",
        "When a job of the kind failed last, whichever monitor ran it.",
        labels=("kind",),
    )
    for kind, moment in _by_label(state.last_failures, max).items():
        failed.add_metric((kind,), moment.timestamp())
    yield failed


def _by_label(
    moments: Mapping[str, datetime], choose: Callable[[list[datetime]], datetime]
) -> dict[str, datetime]:
    """The first or last moment of each label: unknown kinds share one label."""
    by_label = {
        label: [moments[kind] for kind in moments if _label(kind) == label] for label in (*KINDS, OTHER_KIND)
    }
    return {label: choose(found) for label, found in by_label.items() if found}


def _label(kind: str) -> str:
    return kind if kind in KINDS else OTHER_KIND
