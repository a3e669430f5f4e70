"""Metrics of the jobs that this monitor ran."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from lifelong_monitor.jobs.kinds import KINDS

JobOutcome: TypeAlias = Literal["succeeded", "failed", "again"]
"""`again`: it was not finished here, and is begun again, here or by another monitor."""
JOB_OUTCOMES: Final[tuple[JobOutcome, ...]] = get_args(JobOutcome)
OTHER_KIND = "other"
"""Of a newer version of the product."""


@dataclass
class Ending:
    """How a job ended; `again` unless somebody says otherwise."""

    outcome: JobOutcome = "again"


class JobMetrics:
    """Counts jobs by kind and outcome; shows how long the last one took, and whether one runs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._jobs = Counter(
            "lifelong_jobs_total",
            "Jobs that this monitor ran since it started, by kind and outcome: succeeded, failed, or again (it was"
            " interrupted and is begun again).",
            ("kind", "outcome"),
            registry=registry,
        )
        self._running = Gauge(
            "lifelong_jobs_running",
            "Jobs that this monitor runs now: one at a time.",
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

    @contextmanager
    def running(self, kind: str) -> Iterator[Ending]:
        """Show that a job runs during the block, and count it by how it ended."""
        label = kind if kind in KINDS else OTHER_KIND
        ending, started = Ending(), time.monotonic()
        with self._running.labels(label).track_inprogress():
            try:
                yield ending
            finally:
                self._jobs.labels(label, ending.outcome).inc()
                if ending.outcome != "again":
                    self._last_seconds.labels(label).set(time.monotonic() - started)
