"""Metric of the proposed retrainings that wait for a person."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lifelong_core.deploy.adaptation.retraining import RetrainingReason


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
