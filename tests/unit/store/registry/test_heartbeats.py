"""Heartbeats of workers and of monitors, on both databases."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.store import Heartbeat, ModelLoad, Store, Tick, Visit
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
LOADS = {1: ModelLoad("CPUExecutionProvider", None), 3: ModelLoad(None, "no such file.")}

Record = Callable[..., None]


def acknowledge(store: Store, worker_id: str = "one", **changes: Any) -> None:
    values: dict[str, Any] = {
        "host": "ward-3",
        "process": 4711,
        "started_at": STARTED,
        "revision": 7,
        "heads": {(1, None): 2, (1, "site-a"): 5},
        "models": LOADS,
    }
    store.workers.record_heartbeat(worker_id, **{**values, **changes})


def watch(store: Store, monitor_id: str = "one", **changes: Any) -> None:
    store.monitors.record_heartbeat(replace(FIRST, id=monitor_id, **changes))


def age(store: Store, process_id: str, by: timedelta, table: sa.Table = tables.monitors) -> None:
    """Let the last heartbeat be so long ago."""
    with store.database.write() as connection:
        row = connection.execute(sa.select(table).where(table.c.id == process_id)).one()
        change = sa.update(table).where(table.c.id == process_id)
        connection.execute(change.values(seen_at=row.seen_at - by))


class Kind:
    """Processes of one kind, with the same functions for both."""

    def __init__(self, name: str) -> None:
        self.table = tables.metadata.tables[name]
        self.record: Record = {"workers": acknowledge, "monitors": watch}[name]
        self._name = name

    def forget(self, store: Store, process_id: str) -> None:
        getattr(store, self._name).forget(process_id)

    def listed(self, store: Store) -> list[tuple[str, bool, datetime, str]]:
        """Id, whether it counts as dead, time of the last heartbeat, and host."""
        if self._name == "workers":
            return [(one.id, one.is_lost, one.seen_at, one.host) for one in store.workers.list()]
        return [
            (one.heartbeat.id, one.is_lost, one.seen_at, one.heartbeat.host) for one in store.monitors.list()
        ]


@pytest.fixture(params=["workers", "monitors"])
def processes(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


def test_a_later_heartbeat_replaces_the_earlier_one_of_the_same_process_only(store: Store, processes: Kind):
    processes.record(store)
    ((_, is_lost, first, _),) = processes.listed(store)
    assert not is_lost
    assert abs(first - datetime.now(UTC)) < timedelta(minutes=1)
    processes.record(store)
    processes.record(store, "two", host="x" * 300)
    listed = {one[0]: one for one in processes.listed(store)}
    assert listed["one"][2] > first
    assert listed["two"][3] == "x" * 255


def test_a_silent_process_is_lost_and_then_forgotten(store: Store, processes: Kind):
    for process_id, silent in (
        ("alive", LOST_AFTER - timedelta(seconds=10)),
        ("lost", LOST_AFTER + timedelta(seconds=1)),
        ("long lost", FORGOTTEN_AFTER - timedelta(seconds=10)),
        ("forgotten", FORGOTTEN_AFTER + timedelta(seconds=1)),
    ):
        processes.record(store, process_id)
        age(store, process_id, silent, processes.table)
    processes.record(store, "me")
    listed = [one[:2] for one in processes.listed(store)]
    assert listed == [("me", False), ("alive", False), ("lost", True), ("long lost", True)]
    processes.record(store, "lost")
    assert ("lost", False) in [one[:2] for one in processes.listed(store)]


def test_a_process_that_stops_is_forgotten_and_no_heartbeat_changes_the_registry(
    store: Store, processes: Kind
):
    before = store.revision()
    processes.record(store)
    processes.record(store, "two")
    processes.forget(store, "one")
    processes.forget(store, "one")
    assert [one[0] for one in processes.listed(store)] == ["two"]
    assert store.revision() == before


def test_a_heartbeat_is_listed_as_it_was_sent(store: Store):
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


def test_a_worker_is_listed_with_what_it_serves(store: Store):
    acknowledge(store)
    (worker,) = store.workers.list()
    assert (worker.id, worker.host, worker.process, worker.started_at) == ("one", "ward-3", 4711, STARTED)
    assert (worker.revision, worker.heads, worker.models) == (7, {(1, None): 2, (1, "site-a"): 5}, LOADS)
    acknowledge(store, revision=8, heads={})
    (worker,) = store.workers.list()
    assert (worker.revision, dict(worker.heads)) == (8, {})


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
