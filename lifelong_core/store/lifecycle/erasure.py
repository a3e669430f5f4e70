"""Erasure of a group: deletes its predictions, labels with their history, and request ids, those in spools included."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from lifelong_core.entities.entity import Entity
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.deletion import Batches, delete_rows, never_stop
from lifelong_core.store.engine.statements import MOST_VALUES, Repository, upsert_into
from lifelong_core.store.lifecycle.privacy import HASH_BYTES
from lifelong_core.store.log.commit_order import read_log_position, read_order
from lifelong_core.store.log.records import split_ids
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.summaries import Summaries, bucket_of
from lifelong_core.values.errors import InvalidInputError, UnavailableError

SETTLING_SECONDS = 1.0
"""After this time, a transaction that was logging at the start of the erasure holds a lock or has ended."""
_WAITING_SECONDS = 0.2
_ATTEMPTS = 50
"""Attempts to wait for transactions that began before the erasure."""

_log, _labels, _requests = tables.predictions, tables.labels, tables.requests
_revisions, _planned = tables.label_revisions, tables.labelling_samples


@dataclass(frozen=True)
class ErasureOutcome(Entity):
    """Number of rows per table that are deleted, or would be."""

    predictions: int = 0
    labels: int = 0
    requests: int = 0
    label_revisions: int = 0
    """entries of the history of these labels"""

    def __add__(self, other: "ErasureOutcome") -> "ErasureOutcome":
        """Sum of both outcomes."""
        return ErasureOutcome(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class _Some:
    """A batch of predictions of one model, environment and day, and the primary keys of their requests."""

    predictions: list[Row]
    requests: list[tuple[Any, ...]]

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """Primary keys of the predictions and of their labels; those of label revisions and of samples of labelling
        plans begin with them."""
        return [(row.logged_on, row.id) for row in self.predictions]


class Erasure(Repository):
    """Erases groups."""

    def count(self, hashes: Sequence[bytes]) -> ErasureOutcome:
        """Count the rows that `erase` would delete now. It reads the whole log.

        Raises:
            InvalidInputError: there is no hash, or one is invalid.
        """
        _check(hashes)
        rows, _ = self._rows_of(hashes, appeared=0)
        parts = (
            ErasureOutcome(
                predictions=len(some.predictions),
                labels=self._number(_labels, some),
                requests=len(some.requests),
                label_revisions=self._number(_revisions, some),
            )
            for some in self._parts(rows)
        )
        return sum(parts, ErasureOutcome())

    def erase(self, hashes: Sequence[bytes], *, actor: str) -> ErasureOutcome:
        """Delete all logged data of a group; idempotent. It reads the whole log.

        The first transaction records the erasure: from then on, deliveries from any spool leave out earlier predictions
        of the group. Then the rows are deleted in batches. SQLite overwrites them in the file; PostgreSQL does so at
        the next vacuum. Backups do not change.

        Args:
            hashes: of the group, one for each key of the installation.
            actor: name of the person or token.

        Raises:
            InvalidInputError: there is no hash, or one is invalid.
            UnavailableError: the database does not answer, or a transaction that began before does not end; the next
                call deletes the rest.
        """
        _check(hashes)
        self._bury(hashes, actor)
        batches = Batches(self._database, never_stop)
        erased, log_position = self._erase_since(0, hashes, batches)
        batches.wait(SETTLING_SECONDS)
        with self._database.write() as connection:
            settled = read_order(connection)
        for _ in range(_ATTEMPTS):
            more, log_position = self._erase_since(log_position, hashes, batches)
            erased += more
            if log_position > settled:
                break
            batches.wait(_WAITING_SECONDS)
        else:
            raise UnavailableError(
                "a transaction that began before the group was erased is still running.",
                hint="What it writes may be of that group: wait for its end, and erase the group again.",
            )
        self._database.empty_write_ahead_log()
        with self._database.write() as connection:
            details = {"hashes": len(hashes), **vars(erased)}
            write_audit(connection, actor, "groups.erased", "a group", details)
        return erased

    def _bury(self, hashes: Sequence[bytes], actor: str) -> None:
        """Record the erasure, so that deliveries from spools leave the group out."""
        with self._database.write() as connection:
            statement = upsert_into(connection, tables.erased_groups)
            statement = statement.on_conflict_do_update(
                index_elements=["group_hash"], set_={"erased_at": statement.excluded.erased_at}
            )
            moment = database_time(connection)
            rows = [{"group_hash": one, "erased_at": moment} for one in sorted(set(hashes))]
            connection.execute(statement, rows)
            # The audit log holds neither the group nor its hashes.
            write_audit(connection, actor, "groups.erase", "a group", {"hashes": len(hashes)})

    def _erase_since(
        self, appeared: int, hashes: Sequence[bytes], batches: Batches
    ) -> tuple[ErasureOutcome, int]:
        """Erase rows committed at or after a log position; return the outcome and the present log position."""
        rows, log_position = self._rows_of(hashes, appeared)
        erased = ErasureOutcome()
        for some in self._parts(rows, at_once=lambda: min(batches.size, MOST_VALUES)):
            with batches.write(len(some.predictions)) as connection, self._overwriting(connection):
                erased += _delete(connection, some)
        return erased, log_position

    def _rows_of(self, hashes: Sequence[bytes], appeared: int) -> tuple[list[Row], int]:
        """Predictions of the group committed at or after a log position, and the present log position."""
        columns = _log.c.model_id, _log.c.environment, _log.c.logged_on, _log.c.id
        query = sa.select(*columns).where(_log.c.group_hash.in_(hashes), _log.c.commit_order >= appeared)
        with self._database.read() as connection:
            log_position = read_log_position(connection)
            return sorted(connection.execute(query).all()), log_position

    def _parts(self, rows: list[Row], at_once: Callable[[], int] = lambda: MOST_VALUES) -> Iterator[_Some]:
        """Split sorted rows into batches of one model, environment and day, with their requests."""
        for _, day in groupby(rows, key=lambda row: row[:3]):
            left = list(day)
            while left:
                size = at_once()
                part, left = left[:size], left[size:]
                with self._database.read() as connection:
                    requests = _requests_of(connection, part)
                yield _Some(part, requests)

    def _number(self, table: sa.Table, some: _Some) -> int:
        """Number of rows of the labels, or of their revisions, of these predictions."""
        query = sa.select(sa.func.count()).where(
            table.c.logged_on == some.predictions[0].logged_on,
            table.c.prediction_id.in_([row.id for row in some.predictions]),
        )
        with self._database.read() as connection:
            return connection.execute(query).scalar_one()

    @contextmanager
    def _overwriting(self, connection: sa.Connection) -> Generator[None, None, None]:
        """Make SQLite overwrite deleted content in the block, which is not its default."""
        if self._database.is_postgresql:
            yield
            return
        usual = connection.exec_driver_sql("PRAGMA secure_delete").scalar_one()
        connection.exec_driver_sql("PRAGMA secure_delete = 1").close()
        try:
            yield
        finally:
            connection.exec_driver_sql(f"PRAGMA secure_delete = {usual}").close()


def _check(hashes: Sequence[bytes]) -> None:
    if not hashes or any(len(one) != HASH_BYTES for one in hashes):
        raise InvalidInputError(f"expected hashes of {HASH_BYTES} bytes.", field="group")


def _delete(connection: sa.Connection, some: _Some) -> ErasureOutcome:
    Summaries.mark_stale(
        connection,
        model_id=some.predictions[0].model_id,
        environment=some.predictions[0].environment,
        buckets={bucket_of(row.id) for row in some.predictions},
    )
    requests = delete_rows(connection, _requests, some.requests)
    # Predictions first: their deletion waits for concurrent labelling, whose labels are deleted next.
    predictions = delete_rows(connection, _log, some.keys)
    labels = delete_rows(connection, _labels, some.keys)
    revisions = delete_rows(connection, _revisions, some.keys)
    delete_rows(connection, _planned, some.keys)
    return ErasureOutcome(predictions, labels, requests, revisions)


def _requests_of(connection: sa.Connection, rows: list[Row]) -> list[tuple[Any, ...]]:
    """Primary keys of the requests of these predictions. A request has the day of its first prediction."""
    days = rows[0].logged_on, rows[0].logged_on - timedelta(days=1)
    ids = {row.id for row in rows}
    # Most requests have one prediction; SQL compares those, and only longer ones are compared here.
    blob = _requests.c.prediction_ids
    candidates = sa.or_(blob.in_([one.bytes for one in ids]), sa.func.length(blob) > len(rows[0].id.bytes))
    query = sa.select(*_requests.primary_key, blob).where(
        _requests.c.environment == rows[0].environment, _requests.c.logged_on.in_(days), candidates
    )
    found = connection.execute(query.execution_options(yield_per=1000))
    return [tuple(row)[:-1] for row in found if not ids.isdisjoint(split_ids(row.prediction_ids))]
