"""Windows made of the summaries of whole hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.quantification.summary import WindowSummary
from lifelong_core.store import tables
from lifelong_core.store.rows import Row
from lifelong_core.store.statements import portions
from lifelong_core.store.summary_rows import (
    ROWS_AT_ONCE,
    Place,
    Rows,
    empty_summary,
    from_hour_to_hour,
    moment_of,
    read_cursor,
    read_summary,
    rows_by_time,
)

_summaries = tables.window_summaries

_MERGED_AT_ONCE = 16
"""Summaries that are in memory at once when a window is read."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class SummarisedWindow:
    """The newest whole hours of a population, as one summary."""

    summary: WindowSummary
    buckets: tuple[datetime, ...]
    """the hours, oldest first; those between them have no rows"""
    quarantined: int
    horizon: int
    """Rows committed at or after this commit order are not in it."""
    is_grouped: bool
    """whether the summaries of the population know which samples belong together"""


def newest_window(
    connection: sa.Connection, place: Place, fitted: FittedQuantifier, *, samples: int, since: datetime
) -> SummarisedWindow | list[datetime] | None:
    """The newest whole hours with so many samples, or those whose summaries are damaged.

    Returns:
        None: the summaries are not complete.
    """
    cursor = read_cursor(connection, place)
    if cursor is None or not cursor.is_at_horizon:
        return None
    hours = _newest_hours(connection, place, samples, since)
    if any(row.is_stale for row in hours):
        return None
    buckets = tuple(row.bucket for row in reversed(hours))
    summary, damaged = _merged(connection, place, fitted, buckets)
    if damaged:
        return damaged
    quarantined = sum(row.quarantined for row in hours)
    return SummarisedWindow(summary, buckets, quarantined, cursor.commit_order, cursor.is_grouped)


def remade_window(
    connection: sa.Connection,
    place: Place,
    fitted: FittedQuantifier,
    since: datetime,
    until: datetime,
    horizon: int,
    *,
    is_grouped: bool,
) -> SummarisedWindow:
    """The whole hours from one time to another, from the rows below a horizon."""
    first, end = from_hour_to_hour(since, until - _HOUR)
    visible = tables.predictions.c.commit_order < horizon
    total, quarantined = empty_summary(fitted, is_grouped=is_grouped), 0
    hours = set[int]()
    population = place.model_id, place.environment
    for read in rows_by_time(connection, *population, visible, end, first=first, limit=ROWS_AT_ONCE):
        rows = Rows.of(read, classes=fitted.calibration.classes)
        part, left_out = rows.summarised(fitted, None, is_grouped=is_grouped)
        total, quarantined = WindowSummary.merged([total, part]), quarantined + left_out
        hours.update(np.unique(rows.hours).tolist())
    buckets = tuple(moment_of(hour) for hour in sorted(hours))
    return SummarisedWindow(total, buckets, quarantined, horizon, is_grouped)


def _newest_hours(connection: sa.Connection, place: Place, samples: int, since: datetime) -> list[Row]:
    """The newest hours that hold so many samples, newest first, without their summaries."""
    query = (
        sa.select(
            _summaries.c.bucket,
            _summaries.c.samples,
            _summaries.c.quarantined,
            _summaries.c.summary.is_(None).label("is_stale"),
        )
        .where(*place.among(_summaries), _summaries.c.bucket >= since)
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
    connection: sa.Connection, place: Place, fitted: FittedQuantifier, buckets: Sequence[datetime]
) -> tuple[WindowSummary, list[datetime]]:
    """The summary of these hours together, and those of them that are damaged."""
    total = empty_summary(fitted, is_grouped=False)
    damaged = list[datetime]()
    for some in portions(buckets, _MERGED_AT_ONCE):
        query = sa.select(_summaries.c.bucket, _summaries.c.summary).where(
            *place.among(_summaries), _summaries.c.bucket.in_(some)
        )
        read: list[Any] = [
            (row.bucket, read_summary(row.summary, total))
            for row in connection.execute(query.order_by(_summaries.c.bucket))
        ]
        damaged += [bucket for bucket, summary in read if summary is None]
        total = WindowSummary.merged([total, *(summary for _, summary in read if summary is not None)])
    return total, damaged
