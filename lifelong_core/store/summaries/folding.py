"""The parts of `Summaries.fold`: it computes the next rows, or a rebuilt hour, outside of a transaction, and writes
them within the caller's."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.quantification.codebook import MOST_CELLS
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.database import Database
from lifelong_core.store.log.commit_order import read_log_position
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.rows import (
    Cursor,
    Rows,
    SummaryKey,
    empty_summary,
    from_hour_to_hour,
    hours_of,
    moment_of,
    next_rows,
    read_summary,
    rows_by_time,
    summary_row,
)
from lifelong_core.values.errors import ConflictError

_summaries = tables.window_summaries

MOST_CELLS_WRITTEN = 4 * MOST_CELLS
"""Limit on all summaries of one transaction: 1.6 MB with 8 classes, which holds SQLite's only write lock for some
10 ms. Rows of a spool, or of a wrong clock, may be spread over many full hours."""
MOST_HOURS = 256
"""Largest number of hours in one transaction."""
_PORTION = 10_000
"""Rows of one read; at most so many are read without being used."""
_STALE: Mapping[str, object] = {"summary": None, "samples": 0, "quarantined": 0}

Position: TypeAlias = tuple[int, UUID | None]
"""Position of a cursor: the commit order and the last row with it."""

_DROPPED_AT_ONCE = 64
"""Largest number of summaries that one transaction deletes, so that other writers wait briefly."""


@dataclass(frozen=True)
class Step:
    """The writes of one transaction."""

    cursor: Cursor
    """position after the written rows, with the revision that was read first"""
    hours: Mapping[datetime, Mapping[str, object] | None] = field(
        default_factory=dict[datetime, "Mapping[str, object] | None"]
    )
    """columns of the summary of each hour; None: the hour has no rows any more"""
    rows: int = 0
    quarantined: int = 0
    makes_stale: bool = False
    """whether this step marks an hour as stale"""


@dataclass(frozen=True)
class SummaryFolding:
    """Reads and summarises rows of one population."""

    database: Database
    key: SummaryKey
    fitted: FittedQuantifier
    classes: int
    limit: int
    """rows in memory at once"""

    def advance(self, cursor: Cursor) -> Step:
        """The rows after the cursor, merged into the summaries of their hours."""
        with self.database.read() as connection:
            log_position = max(cursor.commit_order, read_log_position(connection))
            rows, after = self._next(connection, cursor, log_position)
            hours = {int(hour): moment_of(int(hour)) for hour in np.unique(rows.hours)}
            present = self._present(connection, list(hours.values()))
        if rows.has_groups and not cursor.is_grouped:
            # Summaries with groups and without cannot be merged, so all rows are read again.
            return Step(Cursor(0, None, is_grouped=True, revision=cursor.revision))
        written = dict[datetime, Mapping[str, object] | None]()
        for hour, bucket in hours.items():
            new, quarantined = rows.summarise(self.fitted, rows.hours == hour, is_grouped=cursor.is_grouped)
            if bucket in present:
                before = read_summary(present[bucket].summary, new)
                if before is None:
                    return Step(cursor, {bucket: _STALE}, makes_stale=True)
                new = WindowSummary.merge([before, new])
                quarantined += present[bucket].quarantined
            written[bucket] = summary_row(new, quarantined)
        return Step(after, written, len(rows.ids), int((~rows.is_usable).sum()))

    def _next(self, connection: sa.Connection, cursor: Cursor, log_position: int) -> tuple[Rows, Cursor]:
        """The next rows that fit into one transaction, and the cursor after them."""
        read, hours = list[Row](), np.empty(0, dtype=np.int64)
        after = cursor
        while len(read) < self.limit:
            portion = min(_PORTION, self.limit - len(read))
            more = next_rows(connection, self.key, after, log_position, portion)
            read += more
            hours = np.concatenate([hours, hours_of([row.id for row in more])])
            fitting = _fitting(hours, self._samples(connection, hours))
            if fitting == len(read) and len(more) < portion:
                after = replace(cursor, commit_order=log_position, last_id=None)
                break
            after = replace(cursor, commit_order=read[fitting - 1].commit_order, last_id=read[fitting - 1].id)
            if fitting < len(read):
                read = read[:fitting]
                break
        return Rows.of(read, classes=self.classes), after

    def rebuild_hour(self, cursor: Cursor, bucket: datetime) -> Step:
        """One hour, rebuilt from its rows before the cursor."""
        first, until = from_hour_to_hour(bucket, bucket)
        total = empty_summary(self.fitted, is_grouped=cursor.is_grouped)
        rows_read = quarantined = 0
        with self.database.read() as connection:
            for read in rows_by_time(
                connection, *self.key.population, cursor.read, until, first=first, limit=self.limit
            ):
                rows = Rows.of(read, classes=self.classes)
                part, left_out = rows.summarise(
                    self.fitted, np.ones(len(rows.ids), dtype=np.bool_), is_grouped=cursor.is_grouped
                )
                total = WindowSummary.merge([total, part])
                rows_read, quarantined = rows_read + len(read), quarantined + left_out
        row = summary_row(total, quarantined) if rows_read else None
        return Step(cursor, {bucket: row}, rows_read, quarantined)

    def _present(self, connection: sa.Connection, buckets: list[datetime]) -> dict[datetime, Row]:
        query = sa.select(_summaries).where(*self.key.match(_summaries), _summaries.c.bucket.in_(buckets))
        return {row.bucket: row for row in connection.execute(query)}

    def _samples(self, connection: sa.Connection, hours: NDArray[np.int64]) -> dict[datetime, int]:
        """Number of samples in the present summaries of these hours."""
        buckets = [moment_of(hour) for hour in _first_hours(hours)]
        query = sa.select(_summaries.c.bucket, _summaries.c.samples).where(
            *self.key.match(_summaries), _summaries.c.bucket.in_(buckets)
        )
        return {row.bucket: row.samples for row in connection.execute(query)}


def _first_hours(hours: NDArray[np.int64]) -> list[int]:
    """The first MOST_HOURS different hours, in the order of their first rows."""
    _, first = np.unique(hours, return_index=True)
    return hours[np.sort(first)[:MOST_HOURS]].tolist()


def _fitting(hours: NDArray[np.int64], present: Mapping[datetime, int]) -> int:
    """Number of leading rows that fit into one transaction; at least those before the second hour.

    Args:
        hours: of the rows, shape (N,).
        present: numbers of samples in the present summaries of the first MOST_HOURS of these hours.
    """
    cells, allowed = 0, list[int]()
    for hour in _first_hours(hours):
        cells += min(MOST_CELLS, present.get(moment_of(hour), 0) + int((hours == hour).sum()))
        if allowed and cells > MOST_CELLS_WRITTEN:
            break
        allowed.append(hour)
    outside = np.flatnonzero(~np.isin(hours, allowed))
    return int(outside[0]) if outside.size else hours.size


_cursors = tables.summary_cursors


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
