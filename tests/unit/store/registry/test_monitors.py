"""Heartbeats of the monitors, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from lifelong_core.store import Heartbeat, Store, Tick, Visit
from lifelong_core.store.registry.heartbeats import FORGOTTEN_AFTER, LOST_AFTER, describe_disagreements
from lifelong_core.store.schema import tables
from tests.databases import sqlite_only

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = Heartbeat(
    id="one",
    host="ward-3",
    process=4711,
    started_at=STARTED,
    interval_seconds=5.0,
    mode="auto",
    environment_modes={"clinic": "shadow"},
    tick=None,
    visits=(),
)
TICK = Tick(STARTED + timedelta(seconds=5), STARTED + timedelta(seconds=6), None)
VISIT = Visit(1, "clinic", STARTED + timedelta(seconds=7), "skip", "no new prediction", STARTED)


def age(store: Store, monitor_id: str, by: timedelta) -> None:
    """Let the last heartbeat be so long ago."""
    with store.database.write() as connection:
        row = connection.execute(sa.select(tables.monitors).where(tables.monitors.c.id == monitor_id)).one()
        change = sa.update(tables.monitors).where(tables.monitors.c.id == monitor_id)
        connection.execute(change.values(seen_at=row.seen_at - by))


def test_a_heartbeat_is_listed_as_it_was_sent(store: Store):
    before = datetime.now(UTC)
    for heartbeat in (
        FIRST,
        replace(FIRST, tick=TICK),
        replace(FIRST, settings={"policy.mode": "auto", "window_samples": 1000}),
        replace(FIRST, tick=replace(TICK, finished_at=STARTED, problem="the database was away.")),
        replace(FIRST, tick=TICK, visits=(VISIT, replace(VISIT, model_id=2, watched_at=None))),
    ):
        store.monitors.record_heartbeat(heartbeat)
        (monitor,) = store.monitors.list()
        assert monitor.heartbeat == heartbeat
        assert not monitor.is_lost
        assert abs(monitor.seen_at - before) < timedelta(minutes=1)


def test_a_later_heartbeat_replaces_the_earlier_one_of_the_same_process_only(store: Store):
    store.monitors.record_heartbeat(FIRST)
    first = store.monitors.list()[0].seen_at
    store.monitors.record_heartbeat(FIRST)
    store.monitors.record_heartbeat(replace(FIRST, id="two", host="x" * 300))
    monitors = {monitor.heartbeat.id: monitor for monitor in store.monitors.list()}
    assert monitors["one"].seen_at > first
    assert monitors["two"].heartbeat.host == "x" * 255


def test_a_silent_monitor_is_lost_and_then_forgotten(store: Store):
    for monitor_id, silent in (
        ("alive", LOST_AFTER - timedelta(seconds=10)),
        ("lost", LOST_AFTER + timedelta(seconds=1)),
        ("long lost", FORGOTTEN_AFTER - timedelta(seconds=10)),
        ("forgotten", FORGOTTEN_AFTER + timedelta(seconds=1)),
    ):
        store.monitors.record_heartbeat(replace(FIRST, id=monitor_id))
        age(store, monitor_id, silent)
    store.monitors.record_heartbeat(replace(FIRST, id="me"))
    found = [(monitor.heartbeat.id, monitor.is_lost) for monitor in store.monitors.list()]
    assert found == [("me", False), ("alive", False), ("lost", True), ("long lost", True)]
    store.monitors.record_heartbeat(replace(FIRST, id="lost"))
    assert not {monitor.heartbeat.id: monitor.is_lost for monitor in store.monitors.list()}["lost"]


def test_a_monitor_that_stops_is_forgotten(store: Store):
    store.monitors.record_heartbeat(FIRST)
    store.monitors.record_heartbeat(replace(FIRST, id="two"))
    store.monitors.forget("one")
    store.monitors.forget("one")
    assert [monitor.heartbeat.id for monitor in store.monitors.list()] == ["two"]


def test_heartbeats_are_no_change_of_the_registry(store: Store):
    before = store.revision()
    store.monitors.record_heartbeat(FIRST)
    store.monitors.forget("one")
    assert store.revision() == before


@sqlite_only
def test_of_living_monitors_the_strictest_mode_holds_in_an_environment(store: Store):
    assert store.monitors.strictest_mode("clinic", "auto") == "auto"
    store.monitors.record_heartbeat(FIRST)
    assert store.monitors.strictest_mode("clinic", "auto") == "shadow"
    assert store.monitors.strictest_mode("elsewhere", "auto") == "auto"
    assert store.monitors.strictest_mode("elsewhere", "propose") == "propose"
    store.monitors.record_heartbeat(replace(FIRST, id="two", mode="propose", environment_modes={}))
    assert store.monitors.strictest_mode("elsewhere", "auto") == "propose"
    for monitor_id in ("one", "two"):
        age(store, monitor_id, LOST_AFTER + timedelta(seconds=1))
    assert store.monitors.strictest_mode("clinic", "auto") == "auto"


@sqlite_only
def test_living_monitors_with_different_settings_are_named_with_what_differs(store: Store):
    first = replace(FIRST, settings={"policy.mode": "shadow", "quantifier": "auto"})
    second = replace(
        first,
        id="two",
        host="ward-4",
        started_at=STARTED + timedelta(seconds=1),
        settings={"policy.mode": "auto", "quantifier": "auto"},
    )
    store.monitors.record_heartbeat(first)
    store.monitors.record_heartbeat(replace(second, settings=first.settings))
    assert describe_disagreements(store.monitors.list()) == []
    store.monitors.record_heartbeat(second)
    assert describe_disagreements(store.monitors.list()) == [
        "monitor 4711 on ward-3 and monitor 4711 on ward-4 watch with different settings:"
        " policy.mode (shadow, auto)."
    ]
    age(store, "two", LOST_AFTER + timedelta(seconds=1))
    assert describe_disagreements(store.monitors.list()) == []
