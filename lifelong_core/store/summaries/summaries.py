"""Window summaries: sufficient statistics of a fitted quantifier for each UTC hour of a population.

The log is read in commit order, so that no row is skipped or read twice. Every row counts in the hour of its creation,
even if it was committed late. Unusable rows are left out and counted (`quarantine`).

Each writing transaction compares the cursor's `revision` with the one that was read, and raises it: the second of two
simultaneous folds fails with a ConflictError and changes nothing. A deletion from the log (`mark_stale`) raises it
too. Reads and computations run outside of the transaction.
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
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.entities.registry import Model
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.leases import Lease, hold_lease
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.check import differences
from lifelong_core.store.summaries.folding import (
    Position,
    Step,
    SummaryFolding,
    begin,
    drop_key,
    drop_some,
    has_any,
    mark_stale,
    other_quantifiers,
    stale_hour,
    write_step,
)
from lifelong_core.store.summaries.rows import ROWS_AT_ONCE, SummaryKey, read_cursor
from lifelong_core.store.summaries.windows import SummarisedWindow, newest_window, rebuild_window

ABANDONED_SECONDS = 86_400.0
"""Summaries of another quantifier are dropped after this time without new rows. An earlier drop would let two monitors
with different settings delete each other's summaries forever."""
_summaries = tables.window_summaries
_cursors = tables.summary_cursors


@dataclass(frozen=True)
class FoldOutcome:
    """Result of one call of `Summaries.fold`."""

    rows: int
    """number of rows of the log that were read"""
    quarantined: int
    """number of unusable rows among them, left out of all summaries"""
    is_done: bool
    """whether the summaries hold all readable rows"""


@dataclass(frozen=True)
class BucketSummary:
    """One UTC hour of a population."""

    bucket: datetime
    """beginning of the hour"""
    summary: WindowSummary | None
    """None: stale after a deletion of rows; the next calls of `fold` rebuild it"""
    samples: int
    quarantined: int


def bucket_of(prediction_id: UUID) -> datetime:
    """The UTC hour of a prediction, by the clock of the worker that answered it."""
    return logged_at(prediction_id).replace(minute=0, second=0, microsecond=0)


class Summaries:
    """Updates, checks and reads the summaries of all populations."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unmoved: dict[SummaryKey, tuple[Position, float]] = {}
        """Latest observed position of other quantifiers, and the time of its latest change."""

    @staticmethod
    def mark_stale(
        connection: sa.Connection,
        *,
        model_id: int | None = None,
        environment: str | None = None,
        buckets: Iterable[datetime] | None = None,
        until: datetime | None = None,
    ) -> None:
        """Mark summaries as stale, within the transaction that deletes their rows of the log.

        This concerns all quantifiers; `fold` rebuilds the summaries from the remaining rows, and drops empty ones. Call
        it before or after the deletion, but in the same transaction.

        Args:
            connection: of the deleting transaction.
            model_id: of the predictions; None: of every model.
            environment: of the predictions; None: every environment.
            buckets: `bucket_of` each prediction; None: all.
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
        """Do the next step on the summaries of one population; the caller repeats it until the outcome is done.

        First it rebuilds stale hours, each as a whole; then it adds up to `limit` new rows of the log. At the first row
        with a group it rebuilds all summaries, with a group for every sample. At the end it drops summaries of other
        quantifiers to which, as this process observed for ABANDONED_SECONDS, no row was added.

        Args:
            model: of the population.
            environment: of the population.
            fitted: the quantifier; each quantifier has its own summaries, computed from the rows still in the log.
            classes: of the model; rows with another number of logits are left out.
            lease: required for every write; None: no lease is needed.
            limit: number of rows in memory at once.

        Raises:
            ConflictError: another process wrote at the same time, or the lease was lost; nothing was written.
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
        """Whether `fold` has work to do even if the log has no new rows; a cheap query."""
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
        """A past window, rebuilt from the rows of the log.

        Args:
            model_id: of the population.
            environment: of the population.
            fitted: the quantifier of the summary.
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
        """The newest whole hours with at least `samples` samples together; all hours if they have fewer.

        Args:
            model_id: of the population.
            environment: of the population.
            fitted: the quantifier of the summaries.
            samples: smallest number of samples.
            since: earlier hours are left out.

        Returns:
            The window; None: the summaries are incomplete, `fold` has work to do.
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
        """Differences between the summaries and a recomputation from their rows of the log.

        Numbers of samples must be equal in every cell, sums to 1e-9. Stale hours are not compared. It reads the whole
        population once.

        Returns:
            One sentence for each hour that differs; empty: all are equal.
        """
        key = SummaryKey(model.id, environment, fitted.digest)
        with self._database.read() as connection:
            cursor = read_cursor(connection, key)
            return [] if cursor is None else differences(connection, key, cursor, fitted)

    def _abandoned(self, connection: sa.Connection, key: SummaryKey) -> SummaryKey | None:
        """Another quantifier whose summaries no monitor updates any more; None: there is none."""
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
