"""A collector of OpenTelemetry traces: a real HTTP server that keeps the spans that it is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime import tracing
from tests.unit.monitor.daemons import until
from tests.unit.monitor.notifications.receivers import Receiver, http_receiver


@dataclass(frozen=True)
class Traced:
    """A span that a collector has received."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    error: str


@dataclass(frozen=True)
class Collector:
    receiver: Receiver

    @property
    def url(self) -> str:
        return f"{self.receiver.url}/v1/traces"

    def spans(self) -> list[Traced]:
        return [span for request in list(self.receiver.received) for span in _spans(request.body)]

    def wait_for(self, *names: str) -> dict[str, Traced]:
        """The last span of each of these names, once all have come."""
        until(lambda: set(names) <= {span.name for span in self.spans()})
        return {span.name: span for span in self.spans()}


@contextmanager
def collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector; this process is not traced after the block."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setattr(tracing, "_tracer", None)
    with http_receiver() as receiver:
        yield Collector(receiver)


def traced(settings: Settings, collector: Collector) -> Settings:
    return settings.model_copy(update={"tracing_url": collector.url})


def _spans(body: bytes) -> Iterator[Traced]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        of_process = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            values = {pair.key: pair.value for pair in span.attributes}
            yield Traced(
                service=of_process["service.name"],
                name=span.name,
                trace=span.trace_id.hex(),
                id=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                attributes={key: getattr(value, value.WhichOneof("value")) for key, value in values.items()},
                error=span.status.message,
            )
