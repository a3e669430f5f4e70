"""Traces of the monitor: a cycle with its steps, a job with the work in its subprocess, a notification."""

from pathlib import Path

import pytest

from lifelong_core.configuration.notification_fields import NotificationSettings
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime import tracing
from lifelong_core.store import Model, Store
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.notifications.webhook import Webhook
from lifelong_monitor.notifications.words import message_of
from tests.collector import collecting, traced
from tests.unit.monitor.notifications.receivers import http_receiver
from tests.unit.monitor.notifications.test_webhook import KEY
from tests.unit.monitor.population import DUE, SHIFTED, draw, predict


def test_a_cycle_is_a_trace_of_its_steps(
    store: Store, settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    with collecting(monkeypatch) as collector:
        tracing.start_tracing(traced(settings, collector), "monitor")
        result = run_cycle(store, settings, model, "clinic", DUE)
        steps = ("quantifier", "window", "judge", "record")
        spans = collector.wait_for("cycle", *steps)
    assert result.last is not None
    assert {spans[name].parent for name in steps} == {spans["cycle"].id}
    assert spans["cycle"].attributes == {
        "lifelong.model": model.reference,
        "lifelong.environment": "clinic",
        "lifelong.outcome": result.outcome,
        "lifelong.cycle_id": str(result.last.id),
    }


def test_a_webhook_carries_the_trace(
    store: Store, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    with collecting(monkeypatch) as collector, http_receiver() as receiver:
        tracing.start_tracing(traced(settings, collector), "monitor")
        channels = NotificationSettings.model_validate(
            {"webhooks": {"a": {"url": receiver.url, "secret_file": file}}, "networks": ["127.0.0.1"]}
        )
        message = message_of(store.notifications.add_test(actor="ann"), channels)
        with tracing.span("notification") as span:
            assert span is not None
            Webhook("a", channels.webhooks["a"], channels.networks).send(message)
        carried = receiver.received[0].headers["traceparent"]
    assert carried.split("-")[2] == f"{span.get_span_context().span_id:016x}"
