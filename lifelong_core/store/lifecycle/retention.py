"""Retention: deletes old predictions, labels, request ids and summaries, by environment and UTC day."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any

import sqlalchemy as sa

from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import database_time, days_before, midnight
from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.deletion import Batches, Pause, delete_rows, never_stop
from lifelong_core.store.engine.errors import BusyError
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_core.store.log.partitions import days_with_partition, drop_partition
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.summaries import Summaries

ACTOR = "monitor"
_ATTEMPTS = 20
"""Attempts to drop a partition; each has a short timeout so that writers do not wait."""
_BETWEEN_ATTEMPTS_SECONDS = 0.2

_log, _labels, _requests = tables.predictions, tables.labels, tables.requests
_revisions, _planned = tables.label_revisions, tables.labelling_samples
_summaries = tables.window_summaries


@dataclass(frozen=True)
class RetentionOutcome:
    """Numbers of rows that one run deleted."""

    predictions: int = 0
    labels: int = 0
    requests: int = 0
    label_revisions: int = 0
    partitions: tuple[date, ...] = ()
    """days deleted by partition; `predictions` includes their rows"""
    is_done: bool = True
    """False: the run was stopped, or a partition stayed in use; the next run continues"""


class Retention(Repository):
    """Deletes rows that exceed their retention."""

    def delete_expired(
        self,
        days: Callable[[str], int | None],
        today: date,
        *,
        pause: Pause = never_stop,
        seconds: float = float("inf"),
    ) -> RetentionOutcome:
        """Delete rows that are older than the retention of their environment, in whole days before `today`.

        Calls may repeat, run concurrently and stop at any time; the next call deletes the rest. The first transaction
        that deletes rows writes an audit entry with the first kept day of each environment.

        Args:
            days: retention of an environment in whole days; None: unlimited.
            today: the present UTC day. An earlier day of the PostgreSQL server's clock takes precedence, so that a
                fast clock here deletes no rows too early.
            pause: waits between two transactions, so that other writers proceed; True: stop now.
            seconds: stop after this time.

        Raises:
            UnavailableError: the database does not answer; earlier deletions stay.
        """
        first_kept, models = self._plan(days, today)
        return _Run(self._database, first_kept, models, pause, seconds).outcome()

    def overdue(self, days: Callable[[str], int | None], today: date) -> list[str]:
        """Return the environments with predictions that `delete_expired` would delete."""
        first_kept, models = self._plan(days, today)
        environments: list[str] = []
        with self._database.read() as connection:
            for environment, day in first_kept.items():
                old = (_older(_log, model, environment, day) for model in models)
                queries = (sa.select(_log.c.id).where(*where).limit(1) for where in old)
                if any(connection.execute(query).first() is not None for query in queries):
                    environments.append(environment)
        return environments

    def _plan(self, days: Callable[[str], int | None], today: date) -> tuple[dict[str, date], list[int]]:
        """Return the first kept day of each environment with limited retention, and all model ids."""
        with self._database.read() as connection:
            names = connection.execute(sa.select(tables.environments.c.name)).scalars().all()
            models = connection.execute(sa.select(tables.models.c.id)).scalars().all()
            if self._database.is_postgresql:
                today = min(today, database_time(connection).astimezone(UTC).date())
        kept = {name: days(name) for name in sorted(names)}
        first = {name: days_before(today, count) for name, count in kept.items() if count is not None}
        return first, sorted(models)


class _Run(Repository):
    """One run of retention.

    Args:
        database: from which it deletes.
        first_kept: the first kept day of each environment with limited retention.
        models: ids of all models.
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
        super().__init__(database)
        self._first_kept = first_kept
        self._models = models
        self._batches = Batches(database, lambda wait: pause(wait) or time.monotonic() > deadline)
        self._is_announced = False
        self._deleted = {_log: 0, _labels: 0, _requests: 0, _revisions: 0, _planned: 0}
        self._dropped: list[date] = []
        self._is_done = True

    def outcome(self) -> RetentionOutcome:
        # Request ids first: an id without its predictions would answer a repeated request with none.
        for environment, day in self._first_kept.items():
            old = _requests.c.environment == environment, _requests.c.logged_on < day
            self._delete(_requests, _requests.c.logged_on, old)
        for model, environment, day in self._populations():
            for table in (_labels, _planned):
                self._delete(table, table.c.prediction_id, _older(table, model, environment, day))
        self._drop_partitions()
        for model, environment, day in self._populations():
            self._delete(_log, _log.c.id, _older(_log, model, environment, day), (model, environment, day))
        self._drop_buckets()
        return RetentionOutcome(
            predictions=self._deleted[_log],
            labels=self._deleted[_labels],
            requests=self._deleted[_requests],
            label_revisions=self._deleted[_revisions],
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
        """Delete the old rows of a table in batches; labels with their history.

        For rows of the log, mark the summaries of `population` stale.
        """
        columns = [*table.primary_key.columns, order.label("position")]
        reached: tuple[sa.ColumnElement[bool], ...] = ()
        while not self._batches.is_stopped:
            # Selected before the lock is taken. PostgreSQL's index still holds deleted rows, hence the position.
            query = sa.select(*columns).where(*old, *reached).order_by(order).limit(self._batches.size)
            rows = self._rows(query)
            if not rows:
                return
            with self._announced(len(rows)) as connection:
                if population is not None:
                    _mark_stale(connection, *population)
                keys = [tuple(row)[:-1] for row in rows]
                self._deleted[table] += delete_rows(connection, table, keys)
                if table is _labels:
                    self._deleted[_revisions] += delete_rows(connection, _revisions, keys)
            reached = (order >= rows[-1].position,)

    def _drop_partitions(self) -> None:
        """Drop the partitions of days that no environment keeps; batches delete the rest."""
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
            # This takes the lock of the audit log before that of the whole log, against the usual order. In a deadlock
            # with the usual order, the short lock timeout of the drop ends the wait.
            self._announce(connection)

        return drop_partition(self._database, day, environments=expired, before=before)

    def _drop_buckets(self) -> None:
        """Delete the summaries of hours without predictions, those that are no longer updated included."""
        key = list(_summaries.primary_key.columns)
        for environment, day in self._first_kept.items():
            old = _summaries.c.environment == environment, _summaries.c.bucket < midnight(day)
            while not self._batches.is_stopped:
                query = sa.select(*key).where(*old).order_by(*key).limit(self._batches.size)
                rows = [tuple(row) for row in self._rows(query)]
                if not rows:
                    break
                with self._announced(len(rows)) as connection:
                    _mark_stale(connection, None, environment, day)
                    delete_rows(connection, _summaries, rows)

    @contextmanager
    def _announced(self, rows: int) -> Generator[sa.Connection, None, None]:
        with self._batches.write(rows) as connection:
            yield connection
            # The lock of the audit log comes after all others.
            self._announce(connection)
        self._is_announced = True

    def _announce(self, connection: sa.Connection) -> None:
        if not self._is_announced:
            before = {name: day.isoformat() for name, day in self._first_kept.items()}
            write_audit(connection, ACTOR, "log.expire", "log", {"made_before": before})


def _older(table: sa.Table, model: int, environment: str, day: date) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions for rows of a population before a day, by an index that begins with the population."""
    identity = table.c.id if table is _log else table.c.prediction_id
    return (
        table.c.model_id == model,
        table.c.environment == environment,
        identity < first_id_at(midnight(day)),
        table.c.logged_on < day,
    )


def _mark_stale(connection: sa.Connection, model: int | None, environment: str, day: date) -> None:
    Summaries.mark_stale(connection, model_id=model, environment=environment, until=midnight(day))
