"""What tests of jobs do with a store."""

import itertools
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from lifelong_core.store import Job, Store
from lifelong_core.store.schema import tables

_numbers = itertools.count()


def submit(store: Store, kind: str = "validate", **payload: Any) -> Job:
    """A job of its own: without a payload, it gets a number."""
    return store.jobs.submit(kind, payload or {"number": next(_numbers)}, actor="ann")


def claim(store: Store, holder: str = "one", seconds: float = 60) -> Job:
    job = store.jobs.claim(holder, lease_seconds=seconds)
    assert job is not None
    return job


def nothing_to_do(store: Store) -> bool:
    return store.jobs.claim("somebody", lease_seconds=60) is None


def move_clock(store: Store, **step: float) -> None:
    """What the others see when the clock was ahead by so much when the jobs were claimed."""
    rows = tables.jobs
    with store.database.write() as connection:
        for row in connection.execute(sa.select(rows).where(rows.c.state == "running")).all():
            values = {
                "held_from": row.held_from + timedelta(**step),
                "held_until": row.held_until + timedelta(**step),
            }
            connection.execute(sa.update(rows).where(rows.c.id == row.id).values(values))


def let_time_pass(store: Store) -> None:
    move_clock(store, seconds=-61)


def audited(store: Store) -> list[tuple[str, str, str]]:
    return [(entry.actor, entry.action, entry.subject) for entry in reversed(store.audit.list())]
