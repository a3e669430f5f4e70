"""Window summaries: sufficient statistics of a fitted quantifier for each UTC hour of a population.

The log is read in commit order, so that no row is skipped or read twice. Every row counts in the hour of its creation,
also if it was committed late. Rows that no estimate may use are left out and counted (`quarantine`).

Each writing transaction compares the cursor's `revision` with the one that was read, and raises it: the second of two
simultaneous foldings fails with a ConflictError and changes nothing. A deletion from the log (`mark_stale`) raises it
too. Reading and computing happen outside of the transaction.
"""

import math
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy import FittedQuantifier
from lifelong_core.deploy.quantification.summaries.window_summary import WindowSummary
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.leases import Lease, hold_lease
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.store.registry.records import Model
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.check import differences
from lifelong_core.store.summaries.folding import Step, SummaryFolding
from lifelong_core.store.summaries.rows import ROWS_AT_ONCE, SummaryKey, read_cursor
from lifelong_core.store.summaries.windows import SummarisedWindow, newest_window, rebuild_window
from lifelong_core.store.summaries.writing import (
    Position,
    begin,
    drop_key,
    drop_some,
    has_any,
    mark_stale,
    other_quantifiers,
    stale_hour,
    write_step,
)

ABANDONED_SECONDS = 86_400.0
"""Summaries of another quantifier go when it has added nothing for so long: another monitor may use it, and of two with
different settings neither would ever have its summaries complete if each dropped those of the other."""
_summaries = tables.window_summaries
_cursors = tables.summary_cursors


@dataclass(frozen=True)
class FoldOutcome:
    """What one call of `Summaries.fold` did."""

    rows: int
    """of the log that were read"""
    quarantined: int
    """of them, which no summary holds"""
    is_done: bool
    """nothing more is to do: the summaries hold all rows that could be read"""


@dataclass(frozen=True)
class BucketSummary:
    """One UTC hour of a population."""

    bucket: datetime
    """its beginning"""
    summary: WindowSummary | None
    """None: rows of it were deleted since, and the next calls of `fold` make it anew"""
    samples: int
    quarantined: int


def bucket_of(prediction_id: UUID) -> datetime:
    """The UTC hour in which a prediction was made, by the clock of the machine that made it."""
    return logged_at(prediction_id).replace(minute=0, second=0, microsecond=0)


class Summaries:
    """Updates, checks and reads the summaries of all populations."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unmoved: dict[SummaryKey, tuple[Position, float]] = {}
        """How far other quantifiers had come when they were last seen to move, and when that was."""

    @staticmethod
    def mark_stale(
        connection: sa.Connection,
        *,
        model_id: int | None = None,
        environment: str | None = None,
        buckets: Iterable[datetime] | None = None,
        until: datetime | None = None,
    ) -> None:
        """Say, within the transaction that deletes rows of the log, whose summaries hold what is no more.

        Of all quantifiers; `fold` makes them anew from the rows that are left, and drops those without any. Call it
        before or after the rows are deleted, but in the same transaction.

        Args:
            connection: of the transaction that deletes.
            model_id: of the predictions; None: of every model.
            environment: of the predictions; None: every one.
            buckets: `bucket_of` each; None: all.
            until: only buckets that begin before this time; None: all.
        """
        mark_stale(connection, model_id, environment, None if buckets is None else set(buckets), until)

    def fold(
        self,
        model: Model,
        environment: str,
        fitted: FittedQuantifier,
        *,
        classes: int,
        lease: Lease | None = None,
        limit: int = ROWS_AT_ONCE,
    ) -> FoldOutcome:
        """Do the next piece of work on the summaries of one population; to be called again until it is done.

        First come hours that deletions made stale, each made anew as a whole; then up to `limit` new rows of the log.
        At the first row with a group all is made anew, with a group for every sample. In the end the summaries of
        other quantifiers are dropped, if this process has seen for ABANDONED_SECONDS that nobody adds to them.

        Args:
            model: of the population.
            environment: of the population.
            fitted: makes the summaries; another one has others, which are made from the rows that the log still holds.
            classes: of the model: rows with another number of logits are left out.
            lease: required for every write; None: no lease is needed.
            limit: rows that are in memory at once.

        Raises:
            ConflictError: another process wrote meanwhile, or the lease was lost; nothing was written.
            UnavailableError: the database does not answer.
        """
        key = SummaryKey(model.id, environment, fitted.digest)
        with self._database.read() as connection:
            cursor = read_cursor(connection, key)
            stale, other = stale_hour(connection, key), self._abandoned(connection, key)
            is_left_over = cursor is not None and cursor.is_at_beginning and has_any(connection, key)
        if cursor is None:
            with self._writing(lease) as connection:
                begin(connection, key)
            return FoldOutcome(0, 0, is_done=False)
        if is_left_over:
            with self._writing(lease) as connection:
                write_step(connection, key, Step(cursor))
                drop_some(connection, key)
            return FoldOutcome(0, 0, is_done=False)
        work = SummaryFolding(self._database, key, fitted, classes, limit)
        step = work.advance(cursor) if stale is None else work.rebuild_hour(cursor, stale)
        if step.cursor != cursor or step.hours:
            with self._writing(lease) as connection:
                write_step(connection, key, step)
        is_current = stale is None and step.cursor.is_at_log_position and not step.makes_stale
        if is_current and other is not None:
            with self._writing(lease) as connection:
                left = drop_key(connection, other)
            if left is None:
                self._unmoved.pop(other, None)
            else:
                self._unmoved[other] = left, -math.inf
        return FoldOutcome(step.rows, step.quarantined, is_done=is_current and other is None)

    def are_behind(self, model_id: int, environment: str) -> bool:
        """Whether `fold` has work to do in any case, even if nothing new is in the log; a cheap question."""
        cursors = sa.select(_cursors.c.last_id, _cursors.c.commit_order).where(
            _cursors.c.model_id == model_id, _cursors.c.environment == environment
        )
        stale = sa.select(_summaries.c.bucket).where(
            _summaries.c.model_id == model_id,
            _summaries.c.environment == environment,
            _summaries.c.summary.is_(None),
        )
        with self._database.read() as connection:
            found = connection.execute(cursors).all()
            is_stale = connection.execute(stale.limit(1)).first() is not None
        is_behind = any(row.last_id is not None or row.commit_order == 0 for row in found)
        return is_stale or is_behind or not found

    def rebuilt_window(
        self,
        model_id: int,
        environment: str,
        fitted: FittedQuantifier,
        *,
        since: datetime,
        until: datetime,
        log_position: int,
        is_grouped: bool,
    ) -> SummarisedWindow:
        """A window of the past, made again from the rows of the log.

        Args:
            model_id: of the population.
            environment: of the population.
            fitted: makes the summary.
            since: the beginning of its oldest hour.
            until: the end of its newest hour.
            log_position: of the window.
            is_grouped: of the window.
        """
        key = SummaryKey(model_id, environment, fitted.digest)
        with self._database.read() as connection:
            return rebuild_window(connection, key, fitted, since, until, log_position, is_grouped=is_grouped)

    def window(
        self, model_id: int, environment: str, digest: str, since: datetime, until: datetime
    ) -> list[BucketSummary]:
        """The hours of a population that begin at or after `since` and before `until`, oldest first.

        Raises:
            InvalidInputError: a summary is damaged.
        """
        query = (
            sa.select(_summaries)
            .where(*SummaryKey(model_id, environment, digest).match(_summaries))
            .where(_summaries.c.bucket >= since, _summaries.c.bucket < until)
            .order_by(_summaries.c.bucket)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [
            BucketSummary(
                row.bucket,
                None if row.summary is None else WindowSummary.from_bytes(row.summary),
                row.samples,
                row.quarantined,
            )
            for row in rows
        ]

    def newest(
        self, model_id: int, environment: str, fitted: FittedQuantifier, *, samples: int, since: datetime
    ) -> SummarisedWindow | None:
        """The newest whole hours that hold at least so many samples together; all there are, if they hold fewer.

        Args:
            model_id: of the population.
            environment: of the population.
            fitted: that made the summaries.
            samples: how many are wanted.
            since: hours that begin before are left out.

        Returns:
            None: the summaries are not complete, `fold` has work to do.
        """
        key = SummaryKey(model_id, environment, fitted.digest)
        with self._database.read() as connection:
            found = newest_window(connection, key, fitted, samples=samples, since=since)
        if not isinstance(found, list):
            return found
        with self._database.write() as connection:
            self.mark_stale(connection, model_id=model_id, environment=environment, buckets=found)
        return None

    def check(self, model: Model, environment: str, fitted: FittedQuantifier) -> list[str]:
        """What differs between the summaries and a recomputation from the rows of the log that they should hold.

        Numbers of samples must be the same in every cell, sums to 1e-9. Hours that `fold` has yet to make anew are not
        compared. It reads the whole population once.

        Returns:
            One sentence for each hour that differs; empty: all are equal.
        """
        key = SummaryKey(model.id, environment, fitted.digest)
        with self._database.read() as connection:
            cursor = read_cursor(connection, key)
            return [] if cursor is None else differences(connection, key, cursor, fitted)

    def _abandoned(self, connection: sa.Connection, key: SummaryKey) -> SummaryKey | None:
        """Another quantifier whose summaries no monitor updates any more."""
        now = time.monotonic()
        for other, position in other_quantifiers(connection, key).items():
            before, since = self._unmoved.setdefault(other, (position, now))
            if position != before:
                self._unmoved[other] = position, now
            elif now - since >= ABANDONED_SECONDS:
                return other
        return None

    @contextmanager
    def _writing(self, lease: Lease | None) -> Generator[sa.Connection, None, None]:
        with self._database.write() as connection:
            if lease is not None:
                hold_lease(connection, lease)
            yield connection
