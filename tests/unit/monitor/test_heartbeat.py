"""The heartbeat of a monitor: process, ticks, and visited populations."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from lifelong_core.configuration.monitor_settings import monitor_settings
from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.store import Heartbeat, Model, MonitorProcess, Store, Visit
from lifelong_core.store.registry.heartbeats import LOST_AFTER
from lifelong_core.values.errors import NotFoundError, UnavailableError
from lifelong_monitor import heartbeat
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor import daemons
from tests.unit.monitor.daemons import until
from tests.unit.monitor.population import BALANCED, SHIFTED, draw, predict


@contextmanager
def running(settings: Settings, **changes: object) -> Iterator[None]:
    """A monitor with a short interval."""
    with daemons.running(settings.model_copy(update={"cycle_interval_seconds": 0.2, **changes})):
        yield


def newest(store: Store) -> Heartbeat | None:
    return next((one.heartbeat for one in store.monitors.list()), None)


def visits(store: Store) -> dict[str, Visit]:
    beat = newest(store)
    return {} if beat is None else {visit.environment: visit for visit in beat.visits}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "LEAST_SECONDS", 0.05)


def test_two_heartbeats_may_fail_before_a_monitor_is_lost() -> None:
    assert LOST_AFTER.total_seconds() >= heartbeat.HEARTBEAT_SECONDS * 3


def test_visits_that_find_nothing_new_watch_a_population_too(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    with running(settings):
        until(lambda: "clinic" in visits(store) and visits(store)["clinic"].outcome == "skip")
        first = visits(store)["clinic"].watched_at
        (cycle,) = store.cycles.list()
        assert first is not None
        assert first >= cycle.finished_at
        until(lambda: (visits(store)["clinic"].watched_at or first) > first)
        assert len(store.cycles.list()) == 1
    assert store.monitors.list() == []


def test_it_names_the_process_its_interval_and_the_modes(store: Store, settings: Settings) -> None:
    policies = {
        "clinic": PolicySettings(mode="shadow"),
        "other": PolicySettings(mode="auto"),
        "third": PolicySettings(minimum_samples=100),  # follows the common mode
    }
    with running(settings, policy=PolicySettings(mode="propose"), environment_policies=policies):
        until(lambda: newest(store))
        beat = newest(store)
    assert (beat.interval_seconds, beat.mode) == (0.2, "propose")
    assert dict(beat.environment_modes) == {"clinic": "shadow", "other": "auto"}


def test_a_visit_that_fails_says_why_and_since_when(
    store: Store, settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))

    def gone(*_: object, **__: object) -> None:
        raise NotFoundError("the artifact is gone.")

    with running(settings):
        until(lambda: "clinic" in visits(store))
        monkeypatch.setattr("lifelong_monitor.schedule.tick.run_cycle", gone)
        predict(store, model, "clinic", draw(BALANCED, 60, seed=3))
        until(lambda: visits(store)["clinic"].outcome == "error")
        failed = visits(store)["clinic"]
        assert "the artifact is gone" in failed.reason
        until(lambda: visits(store)["clinic"].visited_at > failed.visited_at)
        assert visits(store)["clinic"].watched_at == failed.watched_at is not None


def test_a_tick_that_hangs_shows_while_the_heartbeat_goes_on(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.1)
    hangs, began = threading.Event(), datetime.now(UTC)
    monkeypatch.setattr(Ticker, "tick", lambda *_: hangs.wait(20) and None)
    with running(settings):
        until(lambda: (beat := newest(store)) and beat.tick)
        seen_at = store.monitors.list()[0].seen_at
        until(lambda: store.monitors.list()[0].seen_at > seen_at)
        tick = newest(store).tick  # type: ignore[union-attr]
        assert tick.finished_at is None
        assert tick.started_at >= began
        hangs.set()
        until(lambda: (beat := newest(store)) and beat.tick and beat.tick.finished_at)


@pytest.mark.parametrize(
    ("error", "words"), [(UnavailableError("gone."), "gone."), (ZeroDivisionError(), "unexpected error")]
)
def test_a_tick_that_fails_as_a_whole_says_why(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(Ticker, "tick", fails)
    with running(settings):
        until(lambda: (beat := newest(store)) and beat.tick and words in (beat.tick.problem or ""))


def test_a_heartbeat_that_fails_is_said_once_and_stops_no_tick(
    store: Store,
    settings: Settings,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "lifelong_monitor")
    real, tried = type(store.monitors).record_heartbeat, list[int]()

    def fails(monitors: object, beat: Heartbeat) -> None:
        tried.append(1)
        if len(tried) < 4:
            raise UnavailableError("gone for a moment.")
        real(monitors, beat)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.monitors), "record_heartbeat", fails)
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    with running(settings):
        until(lambda: store.monitors.list() and store.cycles.list())
    said = [record.getMessage() for record in caplog.records if "heartbeat" in record.getMessage()]
    assert len(said) == 2
    assert "gone for a moment" in said[0]
    assert said[1] == "the heartbeat is written again"


def test_a_monitor_that_stops_is_not_lost(store: Store, settings: Settings) -> None:
    def listed() -> list[MonitorProcess]:
        return store.monitors.list()

    with running(settings):
        until(listed)
    assert listed() == []


def test_monitors_with_different_settings_are_told_of_in_the_log_once(
    store: Store, settings: Settings, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    stated = monitor_settings(settings.model_copy(update={"policy": PolicySettings(mode="shadow")}))
    at = datetime.now(UTC)
    store.monitors.record_heartbeat(
        Heartbeat("other", "ward-3", 8, at, 0.2, "shadow", {}, None, (), settings=stated)
    )

    def others() -> list[Heartbeat]:
        return [one.heartbeat for one in store.monitors.list() if one.heartbeat.id != "other"]

    with running(settings):
        until(lambda: any(beat.visits for beat in others()))
        until(lambda: (beat := others()[0]).tick and beat.tick.due_at > at)
    (warned,) = [one.message for one in caplog.records if "different settings" in one.message]
    for words in ("monitor 8 on ward-3", "policy.mode (shadow, auto)", "strictest mode"):
        assert words in warned
    assert "would swap" in caplog.text
    assert [cycle.published_version for cycle in store.cycles.list()] == [None]
