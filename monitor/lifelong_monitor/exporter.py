"""Prometheus exporter of the monitor: metric names, their meaning, and the HTTP server that shows them.

Gauges are collected from immutable statuses that are replaced as a whole, so a scrape never sees the estimate
of one cycle beside the head of another, and a population that is gone takes its series with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Self, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lifelong_core.arrays import Floats
from lifelong_core.deploy.policy import MODES
from lifelong_core.errors import ConfigurationError
from lifelong_core.store.records import Outcome
from lifelong_monitor.status import PopulationStatus

POPULATION: Final = ("model", "environment")
CYCLE_OUTCOMES: Final = (*get_args(Outcome), "skip", "error")
CYCLE_SECONDS_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

_Values = Callable[[PopulationStatus], Mapping[str, float]]


class Exporter:
    """Counts cycles and shows the status of every population; everything is in its own `registry`."""

    def __init__(self, *, cycle_interval_seconds: float) -> None:
        # The creation times of counters would double the series and mean nothing after a restart.
        disable_created_metrics()
        self.registry = CollectorRegistry()
        self._statuses = _StatusCollector(cycle_interval_seconds)
        self.registry.register(self._statuses)
        ProcessCollector(registry=self.registry)
        self._cycles = Counter(
            "lifelong_cycles_total",
            "Cycles since this monitor started, by outcome: keep, swap, refuse, skip (nothing to judge) or"
            " error.",
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
        self._server: tuple[Any, Any] | None = None

    def show(self, status: PopulationStatus) -> None:
        """Replace what is shown of one population, and make its counters exist."""
        for outcome in CYCLE_OUTCOMES:
            # A counter that appears with its first event hides that event from increase().
            self._cycles.labels(status.model, status.environment, outcome)
        self._statuses.replace(status)

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

    def listen(self, host: str, port: int) -> None:
        """Serve /metrics on this address until `close`.

        Raises:
            ConfigurationError: the address cannot be listened on, for example because the port is taken.
        """
        try:
            self._server = start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            raise ConfigurationError(
                f"the exporter cannot listen on {host}:{port} ({error.strerror or error}).",
                field="LIFELONG_MONITOR_PORT",
                mend="Stop what listens there (another monitor?) or set another port.",
            ) from error

    def close(self) -> None:
        """Stop serving /metrics."""
        if self._server is not None:
            server, thread = self._server
            server.shutdown()
            server.server_close()
            thread.join()
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

    def replace(self, status: PopulationStatus) -> None:
        self._statuses = {**self._statuses, (status.model, status.environment): status}

    def keep(self, populations: frozenset[tuple[str, str]]) -> None:
        self._statuses = {key: status for key, status in self._statuses.items() if key in populations}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        statuses = tuple(self._statuses.values())
        yield GaugeMetricFamily(
            "lifelong_cycle_interval_seconds",
            "Configured time between two cycles of one population, in seconds.",
            value=self._cycle_interval_seconds,
        )
        for name, (text, extra_label, values) in _GAUGES.items():
            labels = (*POPULATION, extra_label) if extra_label else POPULATION
            family = GaugeMetricFamily(name, text, labels=labels)
            for status in statuses:
                for key, value in values(status).items():
                    family.add_metric(
                        (status.model, status.environment, *((key,) if extra_label else ())), value
                    )
            yield family


def _one(value: float | None) -> dict[str, float]:
    return {} if value is None else {"": value}


def _per_class(status: PopulationStatus, values: Floats | None) -> dict[str, float]:
    return {} if values is None else dict(zip(status.class_names, values.tolist(), strict=True))


_GAUGES: Final[Mapping[str, tuple[str, str | None, _Values]]] = {
    "lifelong_prevalence_estimate": (
        "Estimated share of each class among the recent predictions, found without labels.",
        "class",
        lambda status: _per_class(status, status.cycle and status.cycle.prevalence),
    ),
    "lifelong_prevalence_low": (
        "Lower bound of the interval of lifelong_prevalence_estimate.",
        "class",
        lambda status: _per_class(status, status.cycle and status.cycle.low),
    ),
    "lifelong_prevalence_high": (
        "Upper bound of the interval of lifelong_prevalence_estimate.",
        "class",
        lambda status: _per_class(status, status.cycle and status.cycle.high),
    ),
    "lifelong_prevalence_assumed": (
        "Share of each class that the head assumes which serves now.",
        "class",
        lambda status: _per_class(status, status.head and status.head.assumed_prevalence),
    ),
    "lifelong_prevalence_shift_l1": (
        "L1 distance (0 to 2) between the estimate of the last cycle and what the head it judged assumed.",
        None,
        lambda status: _one(status.cycle and status.cycle.shift_l1),
    ),
    "lifelong_window_samples": (
        "Predictions in the window of the last cycle.",
        None,
        lambda status: _one(status.cycle and status.cycle.window_samples),
    ),
    "lifelong_quarantined_predictions": (
        "Predictions left out of the window of the last cycle because their logits are not finite, all equal, or of"
        " another number of classes.",
        None,
        lambda status: _one(status.cycle and status.cycle.quarantined),
    ),
    "lifelong_cycle_last_outcome": (
        "1 for the outcome of the last cycle that judged a window, 0 for the others.",
        "outcome",
        lambda status: (
            {name: float(name == status.cycle.outcome) for name in get_args(Outcome)} if status.cycle else {}
        ),
    ),
    "lifelong_shift_log_e_value": (
        "Natural logarithm of the evidence that the prevalence is not what the head assumes which serves now,"
        " gathered since that head came in force.",
        None,
        lambda status: _one(status.cycle and status.cycle.evidence and status.cycle.evidence.log_e_value),
    ),
    "lifelong_shift_log_e_value_alarm": (
        "Value of lifelong_shift_log_e_value from which on the prevalence counts as shifted.",
        None,
        lambda status: _one(status.cycle and status.cycle.evidence and status.cycle.evidence.alarm),
    ),
    "lifelong_shift_evidence_samples": (
        "Predictions behind lifelong_shift_log_e_value, each counted once.",
        None,
        lambda status: _one(status.cycle and status.cycle.evidence and status.cycle.evidence.samples),
    ),
    "lifelong_assumption_p_value": (
        "Probability of a window as odd as that of the last cycle if nothing but the prevalence has changed.",
        None,
        lambda status: _one(status.cycle and status.cycle.assumption and status.cycle.assumption.p_value),
    ),
    "lifelong_assumption_level": (
        "Significance level of lifelong_assumption_p_value: below it more than the prevalence has changed.",
        None,
        lambda status: _one(status.cycle and status.cycle.assumption and status.cycle.assumption.level),
    ),
    "lifelong_expected_gain": (
        "Drop of the expected cost per decision that the last cycle expected of a refitted head.",
        None,
        lambda status: _one(status.cycle and status.cycle.gain and status.cycle.gain.value),
    ),
    "lifelong_expected_gain_low": (
        "Lower bound of the interval of lifelong_expected_gain.",
        None,
        lambda status: _one(status.cycle and status.cycle.gain and status.cycle.gain.low),
    ),
    "lifelong_expected_gain_high": (
        "Upper bound of the interval of lifelong_expected_gain.",
        None,
        lambda status: _one(status.cycle and status.cycle.gain and status.cycle.gain.high),
    ),
    "lifelong_largest_harm": (
        "Cost per decision that a swap could do at worst on the window of the last cycle.",
        None,
        lambda status: _one(status.cycle and status.cycle.largest_harm),
    ),
    "lifelong_policy_mode": (
        "1 for what a cycle that wants another head does now (auto: swap, propose: ask, shadow: nothing), 0 for"
        " the others.",
        "mode",
        lambda status: {name: float(name == status.mode) for name in MODES},
    ),
    "lifelong_head_pinned": (
        "1 while a person holds the head that serves now, else 0.",
        None,
        lambda status: _one(float(status.pinned)),
    ),
    "lifelong_proposal_open": (
        "1 while a head that a cycle proposed waits for a person's approval, else 0.",
        None,
        lambda status: _one(float(status.proposed)),
    ),
    "lifelong_cycle_last_success_timestamp_seconds": (
        "Unix time of the last cycle that ended without error, or found nothing new to judge.",
        None,
        lambda status: _one(status.last_success and status.last_success.timestamp()),
    ),
    "lifelong_population_first_seen_timestamp_seconds": (
        "Unix time when this monitor, since its start, first found predictions of the population.",
        None,
        lambda status: _one(status.first_seen.timestamp()),
    ),
    "lifelong_head_version": (
        "Version of the head that serves now.",
        None,
        lambda status: _one(status.head and status.head.version),
    ),
    "lifelong_head_activated_timestamp_seconds": (
        "Unix time when the head that serves now became the active one.",
        None,
        lambda status: _one(status.head and status.head.activated_at.timestamp()),
    ),
    "lifelong_realised_accuracy": (
        "Share of correct decisions among the newest predictions with a known true class.",
        None,
        lambda status: _one(status.realised and status.realised.accuracy),
    ),
    "lifelong_realised_expected_cost": (
        "Mean cost per decision among the newest predictions with a known true class.",
        None,
        lambda status: _one(status.realised and status.realised.expected_cost),
    ),
    "lifelong_labelled_samples": (
        "Predictions with a known true class behind the realised accuracy and cost.",
        None,
        lambda status: _one(status.realised and status.realised.samples),
    ),
}
