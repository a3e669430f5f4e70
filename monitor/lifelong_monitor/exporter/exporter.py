"""Prometheus exporter of the monitor: counters, gauges, and the HTTP server that shows them.

Gauges are collected from immutable statuses that are replaced as a whole, so a scrape never sees the estimate
of one cycle beside the head of another, and a population that is gone takes its series with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lifelong_core.deploy.adaptation.retraining import RetrainingReason
from lifelong_core.entities.cycles import Outcome
from lifelong_core.entities.develop.knowledge import KnowledgeState
from lifelong_core.values.errors import ConfigurationError
from lifelong_monitor.exporter.gauges import GAUGES
from lifelong_monitor.exporter.server import Check, MetricsServer, allow_everybody
from lifelong_monitor.exporter.status import PopulationStatus
from lifelong_monitor.jobs.running.metrics import JobMetrics

POPULATION: Final = ("model", "environment")
ROLE: Final = "role"
"""Label of gauges only: a promotion would begin the counters of its model anew."""
CYCLE_OUTCOMES: Final = (*get_args(Outcome), "skip", "error")
KNOWLEDGE_COUNTS: Final[Mapping[str, str]] = {
    "entries": "Tasks",
    "fingerprints": "Fingerprints of tasks",
    "transfers": "Trainings that started from another task",
}
"""Fields of KnowledgeState that are shown, with their meaning."""
CYCLE_SECONDS_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Exporter:
    """Counts cycles and `jobs`, shows `proposals` and the status of every population; all in its own `registry`."""

    def __init__(self, *, cycle_interval_seconds: float) -> None:
        # The creation times of counters would double the series and mean nothing after a restart.
        disable_created_metrics()
        self.registry = CollectorRegistry()
        self._statuses = _StatusCollector(cycle_interval_seconds)
        self.registry.register(self._statuses)
        ProcessCollector(registry=self.registry)
        self._cycles = Counter(
            "lifelong_cycles_total",
            "Cycles since this monitor started, by outcome: keep, swap (published, or in another mode than auto"
            " only proposed or reported), refuse, skip (nothing to judge) or error.",
            (*POPULATION, "outcome"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "lifelong_cycle_seconds",
            "Duration of cycles that judged a window, in seconds.",
            buckets=CYCLE_SECONDS_BUCKETS,
            registry=self.registry,
        )
        self._tick_errors = Counter(
            "lifelong_tick_errors_total",
            "Ticks that failed as a whole, mostly because the database could not be reached.",
            registry=self.registry,
        )
        self._knowledge = {
            count: Gauge(
                f"lifelong_knowledge_{count}", f"{text} in the knowledge base.", registry=self.registry
            )
            for count, text in KNOWLEDGE_COUNTS.items()
        }
        self.jobs = JobMetrics(self.registry)
        self.proposals = ProposalMetrics(self.registry)
        self._server: MetricsServer | None = None

    def show(self, *statuses: PopulationStatus) -> None:
        """Replace the statuses of these populations at once, and create their counters."""
        for status in statuses:
            if not self._statuses.has(status.model, status.environment):
                for outcome in CYCLE_OUTCOMES:
                    # A counter that appears with its first event hides that event from increase().
                    self._cycles.labels(status.model, status.environment, outcome)
        self._statuses.replace(statuses)

    def forget_all_but(self, populations: Iterable[tuple[str, str]]) -> None:
        """Drop the gauges of every population that is not among these (model reference, environment)."""
        self._statuses.keep(frozenset(populations))

    def count_cycle(self, model: str, environment: str, outcome: str) -> None:
        """Count one cycle; `outcome` is one of CYCLE_OUTCOMES."""
        self._cycles.labels(model, environment, outcome).inc()

    def observe_duration(self, seconds: float) -> None:
        """Add the duration of a cycle that judged a window."""
        self._seconds.observe(seconds)

    def count_tick_error(self) -> None:
        """Count a tick that failed as a whole."""
        self._tick_errors.inc()

    def show_knowledge(self, state: KnowledgeState) -> None:
        """Show the counts of the knowledge base."""
        for count, gauge in self._knowledge.items():
            gauge.set(getattr(state, count))

    def listen(self, host: str, port: int, *, check: Check = allow_everybody) -> None:
        """Serve /metrics on this address until `close`.

        Args:
            host: IP address.
            port: of TCP.
            check: raises where an Authorization header does not allow a scrape.

        Raises:
            ConfigurationError: the address cannot be listened on, for example because the port is taken.
        """
        try:
            self._server = MetricsServer(self.registry, host, port, check=check)
        except OSError as error:
            raise ConfigurationError(
                f"the exporter cannot listen on {host}:{port} ({error.strerror or error}).",
                field="LIFELONG_MONITOR_PORT",
                hint="Stop what listens there (another monitor?) or set another port.",
            ) from error

    def close(self) -> None:
        """Stop serving /metrics."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> Self:
        """Itself; closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.close()


class _StatusCollector(Collector):
    """Turns the statuses into gauges at every scrape."""

    def __init__(self, cycle_interval_seconds: float) -> None:
        self._cycle_interval_seconds = cycle_interval_seconds
        self._statuses: Mapping[tuple[str, str], PopulationStatus] = {}

    def has(self, model: str, environment: str) -> bool:
        return (model, environment) in self._statuses

    def replace(self, statuses: Iterable[PopulationStatus]) -> None:
        new = {(status.model, status.environment): status for status in statuses}
        self._statuses = {**self._statuses, **new}

    def keep(self, populations: frozenset[tuple[str, str]]) -> None:
        self._statuses = {key: status for key, status in self._statuses.items() if key in populations}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        statuses = tuple(self._statuses.values())
        yield GaugeMetricFamily(
            "lifelong_cycle_interval_seconds",
            "Configured time between two cycles of one population, in seconds.",
            value=self._cycle_interval_seconds,
        )
        for name, (text, more_labels, values) in GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=(*POPULATION, ROLE, *more_labels))
            for status in statuses:
                for key, value in values(status).items():
                    family.add_metric((status.model, status.environment, status.role, *key), value)
            yield family


class ProposalMetrics(Collector):
    """Shows the number of open proposals by task, environment and reason; no value where none is open."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._open: Mapping[tuple[str, str, RetrainingReason], int] = {}
        registry.register(self)

    def show(self, open_proposals: Mapping[tuple[str, str, RetrainingReason], int]) -> None:
        """Replace all values."""
        self._open = dict(open_proposals)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauge."""
        family = GaugeMetricFamily(
            "lifelong_retraining_proposals",
            "Retrainings that monitors propose and that wait for a person, by reason: estimated_performance,"
            " realised_performance or repeated_refusals.",
            labels=("task", "environment", "reason"),
        )
        for key, count in self._open.items():
            family.add_metric(key, count)
        yield family
