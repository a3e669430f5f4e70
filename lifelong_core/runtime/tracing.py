"""OpenTelemetry traces, off by default: spans of requests, micro-batches, cycles and jobs, for an OTLP collector.

While tracing is off, `span` costs one comparison, and no library is imported. A collector that is down costs spans and
nothing else: a thread exports them, and drops what it cannot deliver.
"""

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lifelong_core.configuration.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

Parent: TypeAlias = "Context | None"
"""Context of a trace that a span belongs to; None: the present one."""
PARENT_VARIABLE: Final = "TRACEPARENT"
"""Environment variable with the context of a process that another one started."""
EXPORT_SECONDS = 2
"""Longest wait for the collector, also at the end of a process."""
log = logging.getLogger(__name__)
_nothing: Final = nullcontext()
_tracer: "Tracer | None" = None


def start_tracing(settings: Settings, process: str) -> bool:
    """Trace this process if the settings name a collector; return whether it is traced.

    A missing library is logged: traces never keep a process from its work.

    Args:
        settings: with `tracing_url` and `tracing_share`.
        process: `service`, `monitor` or `job`, for the name `lifelong-service`.
    """
    global _tracer
    if settings.tracing_url is None:
        return False
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError:
        log.error(  # noqa: TRY400 - the message says what to do
            "tracing_url is set, and no trace is sent: install the extra, in the clone of lifelong:"
            ' pip install -c constraints.txt -e ".[telemetry]".'
        )
        return False
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.tracing_share)),
        resource=Resource.create({"service.name": f"lifelong-{process}"}),
    )
    exporter = OTLPSpanExporter(settings.tracing_url, timeout=EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _tracer = provider.get_tracer("lifelong")
    return True


def span(
    name: str, *, parent: Parent = None, **attributes: str | int
) -> "AbstractContextManager[Span | None]":
    """A span around the block, with attributes `lifelong.NAME`; None while tracing is off."""
    if _tracer is None:
        return _nothing
    return _recorded(_tracer, name, parent, {f"lifelong.{key}": value for key, value in attributes.items()})


@contextmanager
def _recorded(
    tracer: "Tracer", name: str, parent: Parent, attributes: Mapping[str, str | int]
) -> "Generator[Span, None, None]":
    """A span whose error is the type of an exception: its text may hold data."""
    from opentelemetry.trace import StatusCode

    with tracer.start_as_current_span(
        name, parent, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as started:
        try:
            yield started
        except BaseException as error:
            started.set_status(StatusCode.ERROR, type(error).__name__)
            raise


def note_span(
    name: str, parent: Parent, begin: int, end: int, attributes: Mapping[str, Any] | None = None
) -> None:
    """Add a span that has ended; times in nanoseconds since 1970."""
    if _tracer is not None:
        _tracer.start_span(name, context=parent, start_time=begin, attributes=attributes).end(end)


def present_context() -> Parent:
    """The context of the present span, for another thread; None while tracing is off."""
    if _tracer is None:
        return None
    from opentelemetry.context import get_current

    return get_current()


def carried_context() -> dict[str, str]:
    """Headers `traceparent` and `tracestate` (W3C) for a request to another process; empty while tracing is off."""
    if _tracer is None:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = dict[str, str]()
    TraceContextTextMapPropagator().inject(carrier)
    return carrier


def received_context(headers: Mapping[str, str]) -> Parent:
    """The context that these headers carry, an empty one if they carry none."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(headers, Context())


def inherited_context() -> Parent:
    """The context that the process that started this one left in TRACEPARENT; None while tracing is off."""
    return None if _tracer is None else received_context({"traceparent": os.environ.get(PARENT_VARIABLE, "")})
