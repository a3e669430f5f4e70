"""Windows of summaries of whole hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.rows import (
    ROWS_AT_ONCE,
    Rows,
    SummaryKey,
    empty_summary,
    from_hour_to_hour,
    moment_of,
    read_cursor,
    read_summary,
    rows_by_time,
)

_summaries = tables.window_summaries

_MERGED_AT_ONCE = 16
"""Number of summaries in memory at once when a window is read."""
_HOUR = timedelta(hours=1)


MOST_PARTS = 64
"""Largest number of parts of a window; it sets the resolution of a change's time and the memory."""


@dataclass(frozen=True)
class SummarisedWindow:
    """The newest whole hours of a population, as summaries of successive parts."""

    parts: tuple[WindowSummary, ...]
    """summaries of parts of equal duration, oldest first; parts without rows are left out"""
    begins: tuple[datetime, ...]
    """first hour with rows of each part"""
    summary: WindowSummary
    """summary of all parts together"""
    buckets: tuple[datetime, ...]
    """the hours with rows, oldest first"""
    quarantined: int
    log_position: int
    """Rows committed at or after this commit order are not in it."""
    is_grouped: bool
    """whether the summaries of the population keep the groups of samples"""


def newest_window(
    connection: sa.Connection, key: SummaryKey, fitted: FittedQuantifier, *, samples: int, since: datetime
) -> SummarisedWindow | list[datetime] | None:
    """The newest whole hours with so many samples, or the hours whose summaries are damaged.

    Returns:
        None: the summaries are not complete.
    """
    cursor = read_cursor(connection, key)
    if cursor is None or not cursor.is_at_log_position:
        return None
    hours = _newest_hours(connection, key, samples, since)
    if any(row.is_stale for row in hours):
        return None
    buckets = tuple(row.bucket for row in reversed(hours))
    parts = list[WindowSummary]()
    successive = _successive(buckets)
    for some in successive:
        summary, damaged = _merged(connection, key, fitted, some)
        if damaged:
            return damaged
        parts.append(summary)
    quarantined = sum(row.quarantined for row in hours)
    begins = tuple(some[0] for some in successive)
    parts = parts or [empty_summary(fitted, is_grouped=False)]
    return _window(parts, begins, buckets, quarantined, cursor.commit_order, is_grouped=cursor.is_grouped)


def rebuild_window(
    connection: sa.Connection,
    key: SummaryKey,
    fitted: FittedQuantifier,
    since: datetime,
    until: datetime,
    log_position: int,
    *,
    is_grouped: bool,
) -> SummarisedWindow:
    """The window of the whole hours between two times, from the rows below a log position."""
    first, end = from_hour_to_hour(since, until - _HOUR)
    visible = tables.predictions.c.commit_order < log_position
    totals, quarantined = dict[int, WindowSummary](), 0
    hours = set[datetime]()
    for read in rows_by_time(connection, *key.population, visible, end, first=first, limit=ROWS_AT_ONCE):
        rows = Rows.of(read, classes=fitted.calibration.classes)
        made = [moment_of(hour) for hour in rows.hours.tolist()]
        hours.update(made)
        numbers = np.array([_part_number(hour, since, until) for hour in made])
        for number in np.unique(numbers).tolist():
            part, left_out = rows.summarise(fitted, numbers == number, is_grouped=is_grouped)
            before = [totals[number]] if number in totals else []
            totals[number] = WindowSummary.merge([*before, part])
            quarantined += left_out
    buckets = tuple(sorted(hours))
    begins = tuple(some[0] for some in _successive(buckets, since, until))
    parts = [totals[number] for number in sorted(totals)] or [empty_summary(fitted, is_grouped=is_grouped)]
    return _window(parts, begins, buckets, quarantined, log_position, is_grouped=is_grouped)


def _window(
    parts: Sequence[WindowSummary],
    begins: tuple[datetime, ...],
    buckets: tuple[datetime, ...],
    quarantined: int,
    log_position: int,
    *,
    is_grouped: bool,
) -> SummarisedWindow:
    summary = WindowSummary.merge(parts)
    return SummarisedWindow(tuple(parts), begins, summary, buckets, quarantined, log_position, is_grouped)


def _successive(
    buckets: Sequence[datetime], since: datetime | None = None, until: datetime | None = None
) -> list[list[datetime]]:
    """The hours of each part, oldest first."""
    if not buckets:
        return []
    since, until = since or buckets[0], until or buckets[-1] + _HOUR
    parts = dict[int, list[datetime]]()
    for hour in buckets:
        parts.setdefault(_part_number(hour, since, until), []).append(hour)
    return [parts[number] for number in sorted(parts)]


def _part_number(hour: datetime, since: datetime, until: datetime) -> int:
    """Number of an hour's part, of at most MOST_PARTS parts of equal duration."""
    hours = round((until - since) / _HOUR)
    return (hour - since) // _HOUR * min(hours, MOST_PARTS) // hours


def _newest_hours(connection: sa.Connection, key: SummaryKey, samples: int, since: datetime) -> list[Row]:
    """The newest hours with so many samples together, newest first, without their summaries."""
    query = (
        sa.select(
            _summaries.c.bucket,
            _summaries.c.samples,
            _summaries.c.quarantined,
            _summaries.c.summary.is_(None).label("is_stale"),
        )
        .where(*key.match(_summaries), _summaries.c.bucket >= since)
        .order_by(_summaries.c.bucket.desc())
    )
    found, missing = list[Row](), samples
    for row in connection.execute(query).all():
        if missing <= 0:
            break
        found.append(row)
        missing -= row.samples
    return found


def _merged(
    connection: sa.Connection, key: SummaryKey, fitted: FittedQuantifier, buckets: Sequence[datetime]
) -> tuple[WindowSummary, list[datetime]]:
    """The merged summary of these hours, and the hours with damaged summaries."""
    total = empty_summary(fitted, is_grouped=False)
    damaged = list[datetime]()
    for some in batched(buckets, _MERGED_AT_ONCE):
        query = sa.select(_summaries.c.bucket, _summaries.c.summary).where(
            *key.match(_summaries), _summaries.c.bucket.in_(some)
        )
        read: list[Any] = [
            (row.bucket, read_summary(row.summary, total))
            for row in connection.execute(query.order_by(_summaries.c.bucket))
        ]
        damaged += [bucket for bucket, summary in read if summary is None]
        total = WindowSummary.merge([total, *(summary for _, summary in read if summary is not None)])
    return total, damaged
