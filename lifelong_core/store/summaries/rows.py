"""Reads the rows of the log that follow a cursor; converts summaries to and from rows of their table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.log.commit_order import rows_behind, rows_of
from lifelong_core.store.log.identifiers import EPOCH, first_id_of, logged_on
from lifelong_core.store.log.records import Population, group_keys, usable_rows
from lifelong_core.store.schema import tables
from lifelong_core.values.arrays import Floats, Logits
from lifelong_core.values.errors import InvalidInputError

_log = tables.predictions
_summaries = tables.window_summaries
_cursors = tables.summary_cursors

HOUR_MILLISECONDS = 3_600_000
ROWS_AT_ONCE = 50_000
"""Default number of rows of the log in memory at once."""
SUM_TOLERANCE = 1e-9
"""Relative tolerance of sums over the same rows in another order, relative to the size of the summands."""
SELECTED = (_log.c.commit_order, _log.c.id, _log.c.logits, _log.c.group_hash)


@dataclass(frozen=True)
class SummaryKey:
    """Summaries of one population by one fitted quantifier."""

    model_id: int
    environment: str
    digest: str
    """of the fitted quantifier"""

    @property
    def population(self) -> Population:
        """The population that is summarised."""
        return self.model_id, self.environment

    def match(self, table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
        """Conditions for the rows of this key in the table of summaries or of cursors."""
        return tuple(table.c[name] == value for name, value in self.columns.items())

    @property
    def columns(self) -> dict[str, object]:
        """The key's columns in both tables."""
        return {
            "model_id": self.model_id,
            "environment": self.environment,
            "quantifier_digest": self.digest,
        }


@dataclass(frozen=True)
class Cursor:
    """The position in commit order up to which the summaries hold the log."""

    commit_order: int
    last_id: UUID | None
    """the last summarised row with this commit order; None: none has it"""
    is_grouped: bool
    """whether the summaries keep the groups of samples"""
    revision: int

    @property
    def is_at_beginning(self) -> bool:
        """Whether no row is summarised yet."""
        return self.commit_order == 0

    @property
    def is_at_log_position(self) -> bool:
        """Whether all rows that were readable at the last write are in the summaries."""
        return self.last_id is None and not self.is_at_beginning

    @property
    def read(self) -> sa.ColumnElement[bool]:
        """Condition: rows in the summaries."""
        if self.last_id is None:
            return _log.c.commit_order < self.commit_order
        return sa.not_(self.unread)

    @property
    def unread(self) -> sa.ColumnElement[bool]:
        """Condition: rows not in the summaries."""
        if self.last_id is None:
            return _log.c.commit_order >= self.commit_order
        return rows_behind(self.commit_order, self.last_id)


@dataclass(frozen=True)
class Rows:
    """Rows of one population, unusable ones included."""

    ids: Sequence[UUID]
    logits: Logits
    """shape (K, C), of the K usable rows"""
    is_usable: NDArray[np.bool_]
    """shape (N,)"""
    hours: NDArray[np.int64]
    """shape (N,), hour of each prediction since 1970"""
    groups: Sequence[bytes | None]
    """of all N rows"""

    @classmethod
    def of(cls, rows: Sequence[Row], *, classes: int) -> "Rows":
        """Rows from database rows with the columns `SELECTED`."""
        ids = [row.id for row in rows]
        logits, is_usable = usable_rows([row.logits for row in rows], classes=classes)
        return cls(ids, logits, is_usable, hours_of(ids), [row.group_hash for row in rows])

    @property
    def has_groups(self) -> bool:
        """Whether a usable row has a group."""
        return any(
            group is not None and usable for group, usable in zip(self.groups, self.is_usable, strict=True)
        )

    def summarise(
        self, fitted: FittedQuantifier, chosen: NDArray[np.bool_], *, is_grouped: bool
    ) -> tuple[WindowSummary, int]:
        """The summary of the usable ones among the chosen rows, (N,), and the number of unusable ones among them."""
        taken = chosen & self.is_usable
        keys = None
        if is_grouped:
            rows: list[int] = np.flatnonzero(taken).tolist()
            keys = group_keys([self.ids[index] for index in rows], [self.groups[index] for index in rows])
        summary = fitted.summarize(self.logits[chosen[self.is_usable]], keys)
        return summary, int((chosen & ~self.is_usable).sum())


def empty_summary(fitted: FittedQuantifier, *, is_grouped: bool) -> WindowSummary:
    """A summary of no samples."""
    nothing = np.empty((0, fitted.calibration.classes), dtype=np.float32)
    return fitted.summarize(nothing, np.empty(0, dtype=np.str_) if is_grouped else None)


def read_cursor(connection: sa.Connection, key: SummaryKey) -> Cursor | None:
    """The cursor of a key; None: no summary was started."""
    row = connection.execute(sa.select(_cursors).where(*key.match(_cursors))).one_or_none()
    return None if row is None else Cursor(row.commit_order, row.last_id, row.is_grouped, row.revision)


def next_rows(
    connection: sa.Connection, key: SummaryKey, cursor: Cursor, log_position: int, limit: int
) -> Sequence[Row]:
    """The rows after the cursor, in commit order."""
    query = (
        sa.select(*SELECTED)
        .where(
            cursor.unread,
            _log.c.commit_order < log_position,
            *rows_of(*key.population),
        )
        .order_by(_log.c.commit_order, _log.c.id)
        .limit(limit)
    )
    return connection.execute(query).all()


def rows_by_time(
    connection: sa.Connection,
    model_id: int,
    environment: str,
    *where: sa.ColumnElement[bool],
    first: UUID,
    limit: int,
) -> Iterator[Sequence[Row]]:
    """The rows of a population from an id on, ordered by id, in batches."""
    while True:
        query = (
            sa.select(*SELECTED)
            .where(_log.c.model_id == model_id, _log.c.environment == environment, _log.c.id >= first)
            .where(_log.c.logged_on >= logged_on(first), *where)
            .order_by(_log.c.id)
            .limit(limit)
        )
        rows = connection.execute(query).all()
        if rows:
            yield rows
        if len(rows) < limit:
            return
        first = UUID(int=rows[-1].id.int + 1)


def from_hour_to_hour(first: datetime, last: datetime) -> tuple[UUID, sa.ColumnElement[bool]]:
    """The smallest id of the first hour, and a condition: id not after the last hour."""
    start, end = (round((bucket - EPOCH).total_seconds()) * 1000 for bucket in (first, last))
    days = _log.c.logged_on <= last.date()
    return first_id_of(start), sa.and_(_log.c.id < first_id_of(end + HOUR_MILLISECONDS), days)


def hours_of(ids: Sequence[UUID]) -> NDArray[np.int64]:
    """Hours of these predictions since 1970, shape (N,)."""
    return np.array([one.int >> 80 for one in ids], dtype=np.int64) // HOUR_MILLISECONDS


def moment_of(hour: int) -> datetime:
    """The beginning of an hour since 1970."""
    return EPOCH + timedelta(hours=hour)


def sums_agree(one: Floats, other: Floats, scale: Floats | float) -> bool:
    """Whether two sums over the same rows are equal up to rounding; `scale` is the size of the summands."""
    return bool((np.abs(one - other) <= SUM_TOLERANCE * (np.abs(other) + scale)).all())


def summary_row(summary: WindowSummary, quarantined: int) -> dict[str, object]:
    """The columns of a summary."""
    # Not compressed: compression saves a fifth of the disk but slows down the reading of long windows.
    content = summary.to_bytes(compressed=False)
    return {"summary": content, "samples": summary.samples, "quarantined": quarantined}


def read_summary(content: bytes, like: WindowSummary) -> WindowSummary | None:
    """The summary in a row; None: it is damaged.

    Args:
        content: bytes that `summary_row` wrote.
        like: a summary by the same quantifier.
    """
    try:
        found = WindowSummary.from_bytes(content)
    except InvalidInputError:
        return None
    same = found.quantifier_digest == like.quantifier_digest and found.widths == like.widths
    return found if same else None
