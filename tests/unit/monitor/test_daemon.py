import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lifelong_core.errors import SchemaError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Model, Store
from lifelong_monitor.daemon import Daemon
from lifelong_monitor.exporter import Exporter
from lifelong_monitor.tick import Ticker
from tests.unit.monitor.population import BALANCED, draw, predict


@pytest.fixture
def exporter() -> Exporter:
    return Exporter(cycle_interval_seconds=1)


@contextmanager
def running(settings: Settings, exporter: Exporter) -> Iterator[None]:
    daemon = Daemon(settings, exporter)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        yield
    finally:
        daemon.stop()
        thread.join(timeout=20)
        assert not thread.is_alive()


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def tick_errors(exporter: Exporter) -> float:
    return exporter.registry.get_sample_value("lifelong_tick_errors_total") or 0


def test_it_ticks_at_once_and_again(
    store: Store, settings: Settings, model: Model, exporter: Exporter
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    with running(settings.model_copy(update={"cycle_interval_seconds": 0.2}), exporter):
        until(lambda: len(store.cycles.list()) == 1)
        predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
        until(lambda: len(store.cycles.list()) == 2)
    first, second = sorted(cycle.due_at.timestamp() for cycle in store.cycles.list())
    assert (second - first) / 0.2 == pytest.approx(round((second - first) / 0.2), abs=1e-3)
    assert tick_errors(exporter) == 0


@pytest.mark.parametrize("error", [UnavailableError("gone for a moment."), ZeroDivisionError("a defect")])
def test_a_tick_that_fails_as_a_whole_is_counted_and_the_next_one_comes(
    store: Store,
    settings: Settings,
    model: Model,
    exporter: Exporter,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    real_tick, failures = Ticker.tick, iter([error, error])

    def fails_twice(*arguments: object) -> None:
        for failure in failures:
            raise failure
        real_tick(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Ticker, "tick", fails_twice)
    with running(settings.model_copy(update={"cycle_interval_seconds": 0.2}), exporter):
        until(store.cycles.list)
    assert tick_errors(exporter) == 2


def test_after_a_failed_tick_it_does_not_wait_for_the_next_hour(
    store: Store, settings: Settings, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise UnavailableError("gone.")

    monkeypatch.setattr(Ticker, "tick", fails)
    monkeypatch.setattr("lifelong_monitor.daemon.RETRY_SECONDS", 0.1)
    with running(settings.model_copy(update={"cycle_interval_seconds": 3600.0}), exporter):
        until(lambda: tick_errors(exporter) >= 3)


def test_a_database_without_a_schema_stops_it(settings: Settings, exporter: Exporter) -> None:
    with pytest.raises(SchemaError, match="lifelong init"):
        Daemon(settings, exporter).run()
