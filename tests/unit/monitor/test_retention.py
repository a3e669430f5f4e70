"""Each tick deletes expired rows; errors there do not affect its cycles."""

import logging
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Model, Scope, Store
from lifelong_core.store.lifecycle.retention import Retention, RetentionOutcome
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.housekeeping import RETENTION_AGAIN_SECONDS
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import BALANCED, draw, predict

NOW = datetime.now(UTC)
KEPT = {"retention_days": 5, "environment_retention_days": {"study": 10}}


def tick(store: Store, settings: Settings, days: int) -> float | None:
    """A tick so many days from now."""
    now = NOW + timedelta(days=days)
    ticker = Ticker(store, settings.model_copy(update=KEPT), Exporter(cycle_interval_seconds=60))
    return ticker.tick(now, due_before(now, timedelta(minutes=1)))


def test_a_tick_deletes_what_the_settings_say(
    store: Store, settings: Settings, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    logged = {name: predict(store, model, name, draw(BALANCED, 30, seed=3)) for name in ("clinic", "study")}
    for days, left in ((5, {"clinic", "study"}), (6, {"study"}), (11, set[str]())):
        with caplog.at_level(logging.INFO, "lifelong_monitor.schedule.housekeeping"):
            tick(store, settings, days)
        assert {name for name, ids in logged.items() if store.predictions.get(ids[0])} == left
    assert caplog.text.count("deleted as too old: 30 predictions") == 2


def test_a_tick_deletes_jobs_that_ended_long_ago(
    store: Store, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    store.jobs.submit("validate", {}, actor="ann")
    job = store.jobs.claim("one", lease_seconds=60)
    assert job is not None
    store.jobs.succeed(job, {})
    waiting = store.jobs.submit("validate", {}, actor="ann")
    tick(store, settings, 5)
    assert len(store.jobs.list()) == 2
    with caplog.at_level(logging.INFO, "lifelong_monitor.schedule.housekeeping"):
        tick(store, settings, 6)
    assert store.jobs.list() == [waiting]
    assert "deleted as too old: 1 jobs" in caplog.text


@pytest.mark.parametrize("error", [UnavailableError("it is away."), ValueError("a mistake of ours")])
def test_a_failure_is_logged_and_the_tick_goes_on(
    store: Store,
    settings: Settings,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Retention, "delete_expired", fail)
    assert tick(store, settings, 1) is None
    assert f"could not be deleted: {error}" in caplog.text


def test_what_is_left_goes_soon_after(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retention, "delete_expired", lambda *_, **__: RetentionOutcome(is_done=False))
    assert tick(store, settings, 1) == RETENTION_AGAIN_SECONDS


def test_a_daemon_that_stops_does_not_go_on_deleting(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    changed = settings.model_copy(update=KEPT)
    ticker = Ticker(store, changed, Exporter(cycle_interval_seconds=60), stopping=lambda: True)
    now = NOW + timedelta(days=30)
    ticker.tick(now, due_before(now, timedelta(minutes=1)))
    assert len(store.predictions.window(model.id, "clinic", limit=600, since=NOW - timedelta(days=1)).ids) > 0


def test_a_tick_deletes_sessions_that_are_over(store: Store, settings: Settings) -> None:
    _, secret = store.tokens.create("ann", [Scope.READ], actor="test")
    for idle in (timedelta(milliseconds=1), timedelta(hours=1)):
        store.console_sessions.begin(secret, address="", idle=idle, lifetime=timedelta(hours=2))
    tick(store, settings, 0)
    with store.database.read() as connection:
        left = connection.execute(sa.select(tables.console_sessions)).all()
    assert len(left) == len(store.console_sessions.list()) == 1
