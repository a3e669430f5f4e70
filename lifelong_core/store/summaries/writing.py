"""Writes summaries and cursors; the caller owns the transaction."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.folding import Step
from lifelong_core.store.summaries.rows import SummaryKey
from lifelong_core.values.errors import ConflictError

_summaries = tables.window_summaries
_cursors = tables.summary_cursors

Position: TypeAlias = tuple[int, UUID | None]
"""Position of a cursor: the commit order and the last row with it."""

_DROPPED_AT_ONCE = 64
"""Largest number of summaries that one transaction deletes, so that other writers wait briefly."""


def begin(connection: sa.Connection, key: SummaryKey) -> None:
    """Add the cursor of a key before any row is read: its revision reveals deletions to the reader."""
    population = _cursors.c.model_id == key.model_id, _cursors.c.environment == key.environment
    grouped = sa.select(sa.func.count()).where(*population, _cursors.c.is_grouped)
    is_grouped = connection.execute(grouped).scalar_one() > 0
    values = {"commit_order": 0, "last_id": None, "is_grouped": is_grouped, "revision": 0}
    connection.execute(sa.insert(_cursors).values(**key.columns, **values))


def write_step(connection: sa.Connection, key: SummaryKey, step: Step) -> None:
    """Move the cursor and replace summaries.

    Raises:
        ConflictError: the cursor has another revision than the step was computed from.
    """
    after = step.cursor
    moved = connection.execute(
        sa.update(_cursors)
        .where(*key.match(_cursors), _cursors.c.revision == after.revision)
        .values(
            commit_order=after.commit_order,
            last_id=after.last_id,
            is_grouped=after.is_grouped,
            revision=after.revision + 1,
        )
    )
    if moved.rowcount != 1:
        raise ConflictError(
            "the log or its summaries changed while they were being read.",
            field="summaries",
            hint="Nothing was written; begin again.",
        )
    for bucket, row in step.hours.items():
        connection.execute(sa.delete(_summaries).where(*key.match(_summaries), _summaries.c.bucket == bucket))
        if row is not None:
            connection.execute(sa.insert(_summaries).values(**key.columns, bucket=bucket, **row))


def mark_stale(
    connection: sa.Connection,
    model_id: int | None,
    environment: str | None,
    buckets: Collection[datetime] | None,
    until: datetime | None,
) -> None:
    """See `Summaries.mark_stale`."""
    named = {"model_id": model_id, "environment": environment}
    named = {name: value for name, value in named.items() if value is not None}
    cursors = [_cursors.c[name] == value for name, value in named.items()]
    stale = sa.update(_summaries).where(_summaries.c.summary.is_not(None)).values(summary=None)
    stale = stale.where(*(_summaries.c[name] == value for name, value in named.items()))
    if until is not None:
        stale = stale.where(_summaries.c.bucket < until)
    # The cursors first, as in `write_step`, and in one order: no deadlock.
    locked = sa.select(_cursors.c.revision).where(*cursors).order_by(*_cursors.primary_key)
    connection.execute(locked.with_for_update())
    connection.execute(sa.update(_cursors).where(*cursors).values(revision=_cursors.c.revision + 1))
    if buckets is None:
        connection.execute(stale)
        return
    for bucket in sorted(buckets):
        connection.execute(stale.where(_summaries.c.bucket == bucket))


def stale_hour(connection: sa.Connection, key: SummaryKey) -> datetime | None:
    """The newest stale hour, because windows need it first; None: there is none."""
    query = (
        sa.select(_summaries.c.bucket)
        .where(*key.match(_summaries), _summaries.c.summary.is_(None))
        .order_by(_summaries.c.bucket.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


def has_any(connection: sa.Connection, key: SummaryKey) -> bool:
    """Whether the key has a summary."""
    query = sa.select(_summaries.c.bucket).where(*key.match(_summaries)).limit(1)
    return connection.execute(query).first() is not None


def other_quantifiers(connection: sa.Connection, key: SummaryKey) -> dict[SummaryKey, Position]:
    """Other quantifiers with a cursor of this population, and their positions."""
    query = sa.select(_cursors.c.quantifier_digest, _cursors.c.commit_order, _cursors.c.last_id).where(
        _cursors.c.model_id == key.model_id,
        _cursors.c.environment == key.environment,
        _cursors.c.quantifier_digest != key.digest,
    )
    return {replace(key, digest=digest): (order, last) for digest, order, last in connection.execute(query)}


def drop_key(connection: sa.Connection, key: SummaryKey) -> Position | None:
    """Drop some summaries of a key, or its cursor when none is left; return the position of a cursor that remains."""
    # A monitor that still folds this key starts again.
    connection.execute(
        sa.update(_cursors)
        .where(*key.match(_cursors))
        .values(commit_order=0, last_id=None, revision=_cursors.c.revision + 1)
    )
    drop_some(connection, key)
    if has_any(connection, key):
        return 0, None
    connection.execute(sa.delete(_cursors).where(*key.match(_cursors)))
    return None


def drop_some(connection: sa.Connection, key: SummaryKey) -> None:
    """Drop a limited number of summaries of a key, so that the transaction is short."""
    some = sa.select(_summaries.c.bucket).where(*key.match(_summaries)).limit(_DROPPED_AT_ONCE)
    buckets = connection.execute(some).scalars().all()
    connection.execute(sa.delete(_summaries).where(*key.match(_summaries), _summaries.c.bucket.in_(buckets)))
