"""Traces: nothing while they are off; where they are on, spans without the texts of errors."""

import subprocess
import sys

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime import tracing
from tests.collector import collecting, traced


def test_off_it_loads_no_library_and_every_span_is_the_same_object() -> None:
    script = (
        "import sys\n"
        "from lifelong_core.configuration.settings import Settings\n"
        "from lifelong_core.runtime.tracing import *\n"
        "assert not start_tracing(Settings(), 'monitor')\n"
        "assert span('a') is span('b', x=1)\n"
        "with span('a') as nothing: assert nothing is None\n"
        "assert present_context() is None and carried_context() == {} and inherited_context() is None\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_missing_library_is_said_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert not tracing.start_tracing(Settings(tracing_url="http://127.0.0.1:4318"), "service")
    assert "[telemetry]" in caplog.text


def test_spans_nest_across_processes_and_say_only_the_type_of_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collecting(monkeypatch) as collector:
        assert tracing.start_tracing(traced(Settings(), collector), "job")
        with tracing.span("outer", kind="validate"):
            monkeypatch.setenv(tracing.PARENT_VARIABLE, tracing.carried_context()["traceparent"])
        with (
            pytest.raises(ValueError, match="patient"),
            tracing.span("inner", parent=tracing.inherited_context()),
        ):
            raise ValueError("patient 7")
        spans = collector.wait_for("outer", "inner")
        bodies = b"".join(request.body for request in collector.receiver.received)
    outer, inner = spans["outer"], spans["inner"]
    assert (outer.service, outer.attributes) == ("lifelong-job", {"lifelong.kind": "validate"})
    assert (inner.trace, inner.parent, inner.error) == (outer.trace, outer.id, "ValueError")
    assert b"patient" not in bodies


def test_a_share_of_the_traces_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(monkeypatch) as collector:
        settings = traced(Settings(), collector)
        tracing.start_tracing(settings.model_copy(update={"tracing_share": 0}), "service")
        with tracing.span("left out"):
            pass
        sampled = {"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}
        with tracing.span("of a caller", parent=tracing.received_context(sampled)):
            pass
        spans = collector.wait_for("of a caller")
    assert (spans.keys(), spans["of a caller"].parent) == ({"of a caller"}, "2" * 16)
