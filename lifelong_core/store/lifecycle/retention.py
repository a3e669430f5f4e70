"""Retention: predictions, their labels, request ids and summaries go after so many days, by environment and UTC day."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sa

from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import database_time, days_before
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.deletion import Batches, Pause, delete_rows, never_stop
from lifelong_core.store.engine.errors import BusyError
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_core.store.log.partitions import days_with_partition, drop_partition
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.summaries import Summaries

ACTOR = "monitor"
_ATTEMPTS = 20
"""Attempts to drop a partition; each gives up early so that writers do not wait."""
_BETWEEN_ATTEMPTS_SECONDS = 0.2

_log, _labels, _requests = tables.predictions, tables.labels, tables.requests
_summaries = tables.window_summaries


@dataclass(frozen=True)
class RetentionOutcome:
    """What one run deleted."""

    predictions: int = 0
    labels: int = 0
    requests: int = 0
    partitions: tuple[date, ...] = ()
    """days that went as a whole; their predictions are counted too"""
    is_done: bool = True
    """False: it was stopped, or a partition was in use all the time; the next run goes on"""


class Retention:
    """Deletes rows that exceed their retention."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def delete_expired(
        self,
        days: Callable[[str], int | None],
        today: date,
        *,
        pause: Pause = never_stop,
        seconds: float = float("inf"),
    ) -> RetentionOutcome:
        """Delete what was made more than so many whole days before `today`.

        It may be called again and again, by several processes at once, and be stopped at any time: what is left goes
        with the next call. The first transaction that deletes something says in the audit log what goes.

        Args:
            days: for how many days the predictions of an environment are kept; None: for ever.
            today: the present UTC day. Where the clock of a PostgreSQL server is behind, its day counts: what a
                clock that was set wrong deletes is gone.
            pause: waits between two transactions, so that others may write; True: stop now.
            seconds: stop after this time.

        Raises:
            UnavailableError: the database does not answer; earlier deletions stay.
        """
        first_kept, models = self._plan(days, today)
        return _Run(self._database, first_kept, models, pause, seconds).outcome()

    def overdue(self, days: Callable[[str], int | None], today: date) -> list[str]:
        """The environments with predictions that `delete_expired` would delete."""
        first_kept, models = self._plan(days, today)
        found: list[str] = []
        with self._database.read() as connection:
            for environment, day in first_kept.items():
                old = (_older(_log, model, environment, day) for model in models)
                queries = (sa.select(_log.c.id).where(*where).limit(1) for where in old)
                if any(connection.execute(query).first() is not None for query in queries):
                    found.append(environment)
        return found

    def _plan(self, days: Callable[[str], int | None], today: date) -> tuple[dict[str, date], list[int]]:
        """The first day that is kept, for each environment that does not keep all; and all models."""
        with self._database.read() as connection:
            names = connection.execute(sa.select(tables.environments.c.name)).scalars().all()
            models = connection.execute(sa.select(tables.models.c.id)).scalars().all()
            if self._database.is_postgresql:
                today = min(today, database_time(connection).astimezone(UTC).date())
        kept = {name: days(name) for name in sorted(names)}
        first = {name: days_before(today, count) for name, count in kept.items() if count is not None}
        return first, sorted(models)


class _Run:
    """One run.

    Args:
        database: from which it deletes.
        first_kept: the first day that is kept, for each environment that does not keep all.
        models: all there are.
        pause: between two transactions.
        seconds: after which it stops.
    """

    def __init__(
        self,
        database: Database,
        first_kept: Mapping[str, date],
        models: list[int],
        pause: Pause,
        seconds: float,
    ) -> None:
        deadline = time.monotonic() + seconds
        self._database = database
        self._first_kept = first_kept
        self._models = models
        self._batches = Batches(database, lambda wait: pause(wait) or time.monotonic() > deadline)
        self._is_announced = False
        self._deleted = {_log: 0, _labels: 0, _requests: 0}
        self._dropped: list[date] = []
        self._is_done = True

    def outcome(self) -> RetentionOutcome:
        # Request ids first: one whose predictions are gone would answer a repeated request with nothing.
        for environment, day in self._first_kept.items():
            old = _requests.c.environment == environment, _requests.c.logged_on < day
            self._delete(_requests, _requests.c.logged_on, old)
        for model, environment, day in self._populations():
            self._delete(_labels, _labels.c.prediction_id, _older(_labels, model, environment, day))
        self._drop_partitions()
        for model, environment, day in self._populations():
            self._delete(_log, _log.c.id, _older(_log, model, environment, day), (model, environment, day))
        self._drop_buckets()
        return RetentionOutcome(
            predictions=self._deleted[_log],
            labels=self._deleted[_labels],
            requests=self._deleted[_requests],
            partitions=tuple(self._dropped),
            is_done=self._is_done and not self._batches.is_stopped,
        )

    def _populations(self) -> Iterator[tuple[int, str, date]]:
        for environment, day in self._first_kept.items():
            for model in self._models:
                yield model, environment, day

    def _delete(
        self,
        table: sa.Table,
        order: sa.ColumnElement[Any],
        old: tuple[sa.ColumnElement[bool], ...],
        population: tuple[int, str, date] | None = None,
    ) -> None:
        """Delete the rows of a table that are old, in batches; those of the log from the summaries, too."""
        columns = [*table.primary_key.columns, order.label("position")]
        reached: tuple[sa.ColumnElement[bool], ...] = ()
        while not self._batches.is_stopped:
            # Found before the lock is taken. On PostgreSQL what was deleted is still in the index, hence the position.
            query = sa.select(*columns).where(*old, *reached).order_by(order).limit(self._batches.size)
            with self._database.read() as connection:
                rows = connection.execute(query).all()
            if not rows:
                return
            with self._announced(len(rows)) as connection:
                if population is not None:
                    _mark_stale(connection, *population)
                self._deleted[table] += delete_rows(connection, table, [tuple(row)[:-1] for row in rows])
            reached = (order >= rows[-1].position,)

    def _drop_partitions(self) -> None:
        """Drop the days of which no environment keeps anything; the others are left to the batches."""
        for day in days_with_partition(self._database, max(self._first_kept.values(), default=date.min)):
            expired = [name for name, first in self._first_kept.items() if day < first]
            for _ in range(_ATTEMPTS):
                if self._batches.is_stopped:
                    return
                try:
                    dropped = self._drop_partition(day, expired)
                except BusyError:
                    self._batches.wait(_BETWEEN_ATTEMPTS_SECONDS)
                    continue
                if dropped is not None:
                    self._is_announced = True
                    self._deleted[_log] += dropped
                    self._dropped.append(day)
                break
            else:
                self._is_done = False

    def _drop_partition(self, day: date, expired: list[str]) -> int | None:
        def before(connection: sa.Connection) -> None:
            for environment in expired:
                _mark_stale(connection, None, environment, self._first_kept[environment])
            # This takes the lock of the audit log before that of the whole log, against the usual order: if somebody
            # holds the latter and waits for the former, the drop gives up after its short time, and nothing has waited.
            self._announce(connection)

        return drop_partition(self._database, day, environments=expired, before=before)

    def _drop_buckets(self) -> None:
        """Summaries of hours whose predictions are gone, also of models that nobody summarises any more."""
        key = list(_summaries.primary_key.columns)
        for environment, day in self._first_kept.items():
            old = _summaries.c.environment == environment, _summaries.c.bucket < _midnight(day)
            while not self._batches.is_stopped:
                query = sa.select(*key).where(*old).order_by(*key).limit(self._batches.size)
                with self._database.read() as connection:
                    rows = [tuple(row) for row in connection.execute(query)]
                if not rows:
                    break
                with self._announced(len(rows)) as connection:
                    _mark_stale(connection, None, environment, day)
                    delete_rows(connection, _summaries, rows)

    @contextmanager
    def _announced(self, rows: int) -> Generator[sa.Connection, None, None]:
        with self._batches.write(rows) as connection:
            yield connection
            # Last: the lock of the audit log comes after all others.
            self._announce(connection)
        self._is_announced = True

    def _announce(self, connection: sa.Connection) -> None:
        if not self._is_announced:
            before = {name: day.isoformat() for name, day in self._first_kept.items()}
            write_audit(
                connection, actor=ACTOR, action="log.expire", subject="log", details={"made_before": before}
            )


def _older(table: sa.Table, model: int, environment: str, day: date) -> tuple[sa.ColumnElement[bool], ...]:
    """The rows of a population that were made before a day, by an index that begins with the population."""
    identity = table.c.id if table is _log else table.c.prediction_id
    return (
        table.c.model_id == model,
        table.c.environment == environment,
        identity < first_id_at(_midnight(day)),
        table.c.logged_on < day,
    )


def _mark_stale(connection: sa.Connection, model: int | None, environment: str, day: date) -> None:
    Summaries.mark_stale(connection, model_id=model, environment=environment, until=_midnight(day))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC)
