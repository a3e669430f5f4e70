"""Compares summaries with a recomputation from the rows of the log, hour by hour, in bounded memory."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.rows import (
    ROWS_AT_ONCE,
    SUM_TOLERANCE,
    Cursor,
    Rows,
    SummaryKey,
    empty_summary,
    moment_of,
    read_summary,
    rows_by_time,
    sums_agree,
)
from lifelong_core.values.arrays import Floats

_summaries = tables.window_summaries


class _Hour:
    """The recomputation of one hour."""

    def __init__(self, empty: WindowSummary) -> None:
        self.summary = empty
        self.quarantined = 0
        self.largest_logit = 1.0

    def add(self, summary: WindowSummary, quarantined: int, largest_logit: float) -> None:
        self.summary = WindowSummary.merge([self.summary, summary])
        self.quarantined += quarantined
        self.largest_logit = max(self.largest_logit, largest_logit)


def differences(
    connection: sa.Connection, key: SummaryKey, cursor: Cursor, fitted: FittedQuantifier
) -> list[str]:
    """One sentence for each hour whose summary differs from that of its rows before the cursor."""
    sentences = list[str]()
    expected = set[datetime]()
    for bucket, hour in _hours(connection, key, cursor, fitted):
        expected.add(bucket)
        problem = _compare(_stored(connection, key, bucket), hour)
        if problem is not None:
            sentences.append(f"{_named(key, bucket)}: {problem}.")
    query = sa.select(_summaries.c.bucket).where(*key.match(_summaries), _summaries.c.summary.is_not(None))
    stored = set(connection.execute(query).scalars())
    return sentences + [
        f"{_named(key, bucket)}: there is a summary, and the log has no rows."
        for bucket in sorted(stored - expected)
    ]


def _hours(
    connection: sa.Connection, key: SummaryKey, cursor: Cursor, fitted: FittedQuantifier
) -> Iterator[tuple[datetime, _Hour]]:
    """Every hour with rows before the cursor, oldest first."""
    classes, is_grouped = fitted.calibration.classes, cursor.is_grouped
    present: tuple[datetime, _Hour] | None = None
    for read in rows_by_time(connection, *key.population, cursor.read, first=UUID(int=0), limit=ROWS_AT_ONCE):
        rows = Rows.of(read, classes=classes)
        for number in np.unique(rows.hours).tolist():
            bucket = moment_of(number)
            if present is None or present[0] != bucket:
                if present is not None:
                    yield present
                present = bucket, _Hour(empty_summary(fitted, is_grouped=is_grouped))
            present[1].add(
                *rows.summarise(fitted, rows.hours == number, is_grouped=is_grouped),
                float(np.abs(rows.logits).max(initial=0)),
            )
    if present is not None:
        yield present


def _stored(connection: sa.Connection, key: SummaryKey, bucket: datetime) -> Row | None:
    query = sa.select(_summaries).where(*key.match(_summaries), _summaries.c.bucket == bucket)
    return connection.execute(query).one_or_none()


def _compare(row: Row | None, hour: _Hour) -> str | None:
    """The difference; None: there is none, or the summary is stale."""
    expected = hour.summary
    if row is None:
        return f"there is no summary of {expected.samples} samples"
    if row.summary is None:
        return None
    summary = read_summary(row.summary, expected)
    if summary is None:
        return "the summary is damaged"
    if (row.samples, row.quarantined) != (expected.samples, hour.quarantined):
        return (
            f"the summary counts {row.samples} samples and {row.quarantined} left out,"
            f" the log {expected.samples} and {hour.quarantined}"
        )
    if not (
        np.array_equal(summary.cells, expected.cells) and np.array_equal(summary.counts, expected.counts)
    ):
        return "samples are counted in other cells than in the log"
    if summary.groups != expected.groups:
        return "the groups are not those of the log"
    counts = expected.counts[:, np.newaxis].astype(np.float64)
    samples: Floats = np.array([float(expected.samples)])
    scales = {
        "feature_sums": counts,
        "logit_sums": counts * hour.largest_logit,
        "moments": samples,
        # Logarithms of 32-bit numbers are below 100.
        "log_norms": 100.0**2 * samples,
    }
    for name, scale in scales.items():
        if not sums_agree(getattr(summary, name), getattr(expected, name), scale):
            return f"{name} differ by more than {SUM_TOLERANCE:g}"
    return None


def _named(key: SummaryKey, bucket: datetime) -> str:
    return f"summaries of model {key.model_id} in {key.environment}, {bucket:%Y-%m-%d %H:%M} UTC"
