"""Serving processes as they report themselves: their heads, and lost ones."""

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lifelong_core.store import ModelLoad, Store
from lifelong_core.store.registry.heartbeats import FORGOTTEN_AFTER, LOST_AFTER
from lifelong_core.store.schema import tables

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def acknowledge(store: Store, worker_id: str = "one", **changes: Any) -> None:
    values: dict[str, Any] = {
        "host": "ward-3",
        "process": 4711,
        "started_at": STARTED,
        "revision": 7,
        "heads": {(1, None): 2, (1, "site-a"): 5},
        "models": {1: ModelLoad("CPUExecutionProvider", None), 3: ModelLoad(None, "no such file.")},
    }
    store.workers.record_heartbeat(worker_id, **{**values, **changes})


def age(store: Store, worker_id: str, by: timedelta) -> None:
    """Let the last sign of life be so long ago."""
    with store.database.write() as connection:
        row = connection.execute(sa.select(tables.workers).where(tables.workers.c.id == worker_id)).one()
        change = sa.update(tables.workers).where(tables.workers.c.id == worker_id)
        connection.execute(change.values(seen_at=row.seen_at - by))


def test_a_worker_is_listed_with_what_it_serves(store: Store):
    before = datetime.now(UTC)
    acknowledge(store)
    (worker,) = store.workers.list()
    assert (worker.id, worker.host, worker.process, worker.started_at) == ("one", "ward-3", 4711, STARTED)
    assert (worker.revision, worker.heads) == (7, {(1, None): 2, (1, "site-a"): 5})
    assert worker.models == {
        1: ModelLoad("CPUExecutionProvider", None),
        3: ModelLoad(None, "no such file."),
    }
    assert not worker.is_lost
    assert abs(worker.seen_at - before) < timedelta(minutes=1)


def test_a_later_acknowledgement_takes_the_place_of_the_earlier_one(store: Store):
    acknowledge(store)
    first = store.workers.list()[0].seen_at
    acknowledge(store, revision=8, heads={})
    acknowledge(store, "two", host="x" * 300)
    workers = {worker.id: worker for worker in store.workers.list()}
    assert (workers["one"].revision, dict(workers["one"].heads)) == (8, {})
    assert workers["one"].seen_at > first
    assert workers["two"].host == "x" * 255


def test_who_is_silent_is_lost_and_then_forgotten(store: Store):
    for worker_id, silent in (
        ("alive", LOST_AFTER - timedelta(seconds=10)),
        ("lost", LOST_AFTER + timedelta(seconds=1)),
        ("long lost", FORGOTTEN_AFTER - timedelta(seconds=10)),
        ("forgotten", FORGOTTEN_AFTER + timedelta(seconds=1)),
    ):
        acknowledge(store, worker_id)
        age(store, worker_id, silent)
    acknowledge(store, "me")
    found = {worker.id: worker.is_lost for worker in store.workers.list()}
    assert found == {"me": False, "alive": False, "lost": True, "long lost": True}
    assert [worker.id for worker in store.workers.list()] == ["me", "alive", "lost", "long lost"]
    acknowledge(store, "lost")
    assert not {worker.id: worker.is_lost for worker in store.workers.list()}["lost"]


def test_a_worker_that_stops_takes_itself_from_the_list(store: Store):
    acknowledge(store, "one")
    acknowledge(store, "two")
    store.workers.forget("one")
    store.workers.forget("one")
    assert [worker.id for worker in store.workers.list()] == ["two"]


def test_signs_of_life_are_no_change_of_the_registry(store: Store):
    before = store.revision()
    acknowledge(store)
    store.workers.forget("one")
    assert store.revision() == before
    assert store.registry(before) is None
