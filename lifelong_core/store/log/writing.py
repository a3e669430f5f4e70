"""Writes the predictions of a micro-batch and the keys of its requests to the log, in one transaction.

The statements are constants for each database: building them for every batch took twice as long as the commit.
"""

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from lifelong_core.store.engine.columns import pack_logits
from lifelong_core.store.engine.statements import batched
from lifelong_core.store.log.identifiers import day_of, logged_on
from lifelong_core.store.log.records import LogEntry, RequestKey, join_ids, split_ids
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError

MAXIMUM_REQUEST_ID = 200
_requests = tables.requests

_REQUEST = "INSERT INTO requests (model_id, request_id, environment, body_digest, prediction_ids, logged_on)"
_PREDICTION = (
    "INSERT INTO predictions"
    " (logged_on, id, model_id, environment, head_version, decision, logits, group_hash, token_id,"
    " commit_order)"
)
_UNLESS_THERE = " ON CONFLICT DO NOTHING"
_SQLITE_REQUEST = f"{_REQUEST} VALUES (?, ?, ?, ?, ?, ?){_UNLESS_THERE} RETURNING 1"
_SQLITE_COMMIT_ORDER = "UPDATE commit_clock SET value = value + 1 RETURNING value"
_SQLITE_PREDICTION = f"{_PREDICTION} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SQLITE_MISSING_PREDICTION = f"{_SQLITE_PREDICTION}{_UNLESS_THERE}"
# One statement for all rows, with one binary parameter (%b) per column: half the time of executemany.
_POSTGRESQL_REQUESTS = (
    f"{_REQUEST} SELECT * FROM"  # noqa: S608 - of constants, as those below
    " unnest(%b::int[], %b::text[], %b::text[], %b::bytea[], %b::bytea[], %b::date[])"
    f"{_UNLESS_THERE} RETURNING model_id, environment, request_id"
)
_POSTGRESQL_PREDICTIONS = (
    f"{_PREDICTION} SELECT rows.logged_on, rows.id, rows.model_id, rows.environment,"  # noqa: S608
    " rows.head_version, rows.decision, rows.logits, rows.group_hash, rows.token_id,"
    " pg_current_xact_id()::text::bigint + clock.value FROM commit_clock AS clock,"
    " unnest(%b::date[], %b::uuid[], %b::int[], %b::text[], %b::int[], %b::int[], %b::bytea[], %b::bytea[],"
    " %b::int[], %b::text[])"
    " AS rows (logged_on, id, model_id, environment, head_version, decision, logits, group_hash, token_id,"
    " request_id)"
)
_POSTGRESQL_MISSING_PREDICTIONS = f"{_POSTGRESQL_PREDICTIONS}{_UNLESS_THERE}"
# Writes the keys, and the predictions of new requests: one statement is one transaction and one round trip.
_POSTGRESQL_ENTRIES = (
    f"WITH new AS ({_POSTGRESQL_REQUESTS}), logged AS ({_POSTGRESQL_PREDICTIONS}"  # noqa: S608
    " WHERE rows.request_id IS NULL"
    " OR (rows.model_id, rows.environment, rows.request_id) IN (SELECT new.* FROM new)) SELECT * FROM new"
)


def insert_entries(connection: sa.Connection, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
    """Write the entries with new requests, on PostgreSQL by one statement; return for each whether it was written.

    Raises:
        InvalidInputError: an entry has no predictions, or holds a value that is not valid for the log.
    """
    if connection.dialect.name != "postgresql":
        return insert_entries_on_driver(_driver_of(connection), entries)
    check_entries(entries)
    first_of_key = _first_of_key(entries)
    candidates = [entry for entry in entries if _is_first(entry, first_of_key)]
    new = _insert_postgresql(connection, candidates, first_of_key)
    return _written(entries, first_of_key, new)


def insert_entries_on_driver(driver: sqlite3.Connection, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
    """As `insert_entries`, on a connection of SQLite's driver."""
    check_entries(entries)
    first_of_key = _first_of_key(entries)
    new = _insert_requests_on_driver(driver, first_of_key) if first_of_key else set[RequestKey]()
    written = _written(entries, first_of_key, new)
    rows = [entry for entry, is_written in zip(entries, written, strict=True) if is_written]
    if rows:
        driver.executemany(_SQLITE_PREDICTION, _sqlite_values(driver, rows)).close()
    return written


def _written(
    entries: Sequence[LogEntry], first_of_key: dict[RequestKey, LogEntry], new: Collection[RequestKey]
) -> tuple[bool, ...]:
    """For each entry whether it was written, if the requests with the keys `new` were."""
    return tuple(
        entry.request is None or (first_of_key[entry.request] is entry and entry.request in new)
        for entry in entries
    )


def _is_first(entry: LogEntry, first_of_key: dict[RequestKey, LogEntry]) -> bool:
    return entry.request is None or first_of_key[entry.request] is entry


def _driver_of(connection: sa.Connection) -> sqlite3.Connection:
    driver: Any = connection.connection.dbapi_connection
    return driver


@dataclass(frozen=True)
class Repetition:
    """A request that two machines answered independently, for example during an outage.

    Attributes:
        predictions: ids of its predictions that are not logged.
        first: ids of the logged predictions that answered it first.
    """

    predictions: tuple[UUID, ...]
    first: tuple[UUID, ...]


def insert_missing_entries(
    connection: sa.Connection, entries: Sequence[LogEntry]
) -> tuple[int, list[Repetition]]:
    """Write entries from the spool; after a commit of unknown outcome, some of them may be in the log already.

    Every missing prediction is written, with two exceptions for a request whose key another request has: with the same
    body it is a repetition and is left out; with another body it is logged without its key.

    Returns:
        The number of predictions written, and the repetitions.

    Raises:
        InvalidInputError: an entry has no predictions, or holds a value that is not valid for the log.
    """
    check_entries(entries)
    first_of_key = _first_of_key(entries)
    new = _insert_requests(connection, first_of_key) if first_of_key else set[RequestKey]()
    answered = _answered(connection, first_of_key.keys() - new)
    left, repetitions = _without_repetitions(entries, first_of_key, answered)
    if not left:
        return 0, repetitions
    if connection.dialect.name == "postgresql":
        values = _columns(_postgresql_rows(left))
        return connection.exec_driver_sql(_POSTGRESQL_MISSING_PREDICTIONS, values).rowcount, repetitions
    driver = _driver_of(connection)
    with closing(driver.executemany(_SQLITE_MISSING_PREDICTION, _sqlite_values(driver, left))) as cursor:
        return cursor.rowcount, repetitions


def _answered(
    connection: sa.Connection, keys: Collection[RequestKey]
) -> dict[RequestKey, tuple[bytes, tuple[UUID, ...]]]:
    """Body digest and prediction ids of the requests with these keys that are in the log."""
    answered: dict[RequestKey, tuple[bytes, tuple[UUID, ...]]] = {}
    for some in batched(list(keys)):
        query = sa.select(_requests).where(
            _requests.c.model_id.in_({key.model_id for key in some}),
            _requests.c.request_id.in_({key.request_id for key in some}),
        )
        for row in connection.execute(query):
            key = RequestKey(row.model_id, row.environment, row.request_id)
            answered[key] = (row.body_digest, tuple(split_ids(row.prediction_ids)))
    return answered


def _without_repetitions(
    entries: Sequence[LogEntry],
    first_of_key: dict[RequestKey, LogEntry],
    answered: dict[RequestKey, tuple[bytes, tuple[UUID, ...]]],
) -> tuple[list[LogEntry], list[Repetition]]:
    left: list[LogEntry] = []
    repetitions: list[Repetition] = []
    for entry in entries:
        if entry.request is None:
            left.append(entry)
            continue
        first = first_of_key[entry.request]
        digest, ids = answered.get(entry.request, (first.body_digest, _ids_of(first)))
        if (own := _ids_of(entry)) != ids and entry.body_digest == digest:
            repetitions.append(Repetition(own, ids))
        else:
            left.append(entry)
    return left, repetitions


def _ids_of(entry: LogEntry) -> tuple[UUID, ...]:
    return tuple(prediction.id for prediction in entry.predictions)


def check_entries(entries: Sequence[LogEntry]) -> None:
    """Check that the entries are valid for the log.

    Raises:
        InvalidInputError: an entry has no predictions, logits are not one row of at least two finite float32, or a
            request id has no or more than 200 characters.
    """
    for entry in entries:
        if not entry.predictions:
            raise InvalidInputError("a log entry needs at least one prediction.", field="predictions")
        if entry.request is not None and not 0 < len(entry.request.request_id) <= MAXIMUM_REQUEST_ID:
            raise InvalidInputError(
                f"expected 1 to {MAXIMUM_REQUEST_ID} characters.",
                field="request_id",
                hint="Send a shorter request id, or none.",
            )
    rows = [prediction.logits for entry in entries for prediction in entry.predictions]
    for row in rows:
        if row.dtype != np.float32 or row.ndim != 1 or row.size < 2:
            raise InvalidInputError(
                f"expected one row of at least two float32 logits, got {row.dtype} of shape {row.shape}.",
                field="logits",
            )
    if not np.isfinite(np.concatenate(rows)).all():
        raise InvalidInputError("expected finite logits.", field="logits")


def _first_of_key(entries: Sequence[LogEntry]) -> dict[RequestKey, LogEntry]:
    first: dict[RequestKey, LogEntry] = {}
    for entry in entries:
        if entry.request is not None:
            first.setdefault(entry.request, entry)
    return first


def _insert_postgresql(
    connection: sa.Connection, entries: Sequence[LogEntry], first_of_key: dict[RequestKey, LogEntry]
) -> set[RequestKey]:
    predictions = _columns(_postgresql_rows(entries))
    if not first_of_key:
        connection.exec_driver_sql(_POSTGRESQL_PREDICTIONS, predictions)
        return set()
    values = _columns(_request_rows(first_of_key)) + predictions
    return {RequestKey(*row) for row in connection.exec_driver_sql(_POSTGRESQL_ENTRIES, values)}


def _insert_requests(connection: sa.Connection, entries: dict[RequestKey, LogEntry]) -> set[RequestKey]:
    if connection.dialect.name != "postgresql":
        return _insert_requests_on_driver(_driver_of(connection), entries)
    values = _columns(_request_rows(entries))
    return {RequestKey(*row) for row in connection.exec_driver_sql(_POSTGRESQL_REQUESTS, values)}


def _insert_requests_on_driver(
    driver: sqlite3.Connection, entries: dict[RequestKey, LogEntry]
) -> set[RequestKey]:
    new = set[RequestKey]()
    with closing(driver.cursor()) as cursor:
        for model_id, request_id, environment, *rest, day in _request_rows(entries):
            values = (model_id, request_id, environment, *rest, day.isoformat())
            if cursor.execute(_SQLITE_REQUEST, values).fetchone() is not None:
                new.add(RequestKey(model_id, environment, request_id))
    return new


def _sqlite_values(driver: sqlite3.Connection, entries: Sequence[LogEntry]) -> list[tuple[Any, ...]]:
    with closing(driver.execute(_SQLITE_COMMIT_ORDER)) as cursor:
        order = cursor.fetchone()[0]
    return [
        (
            day_of(prediction.id),
            prediction.id.bytes,
            prediction.model_id,
            prediction.environment,
            prediction.head_version,
            prediction.decision,
            pack_logits(prediction.logits),
            prediction.group_hash,
            entry.token_id,
            order,
        )
        for entry in entries
        for prediction in entry.predictions
    ]


def _postgresql_rows(entries: Sequence[LogEntry]) -> list[tuple[Any, ...]]:
    return [
        (
            logged_on(prediction.id),
            prediction.id,
            prediction.model_id,
            prediction.environment,
            prediction.head_version,
            prediction.decision,
            pack_logits(prediction.logits),
            prediction.group_hash,
            entry.token_id,
            None if entry.request is None else entry.request.request_id,
        )
        for entry in entries
        for prediction in entry.predictions
    ]


def _request_rows(entries: dict[RequestKey, LogEntry]) -> list[tuple[Any, ...]]:
    # Sorted, so that concurrent writers of the same keys do not deadlock.
    keys = sorted(entries, key=lambda key: (key.model_id, key.environment, key.request_id))
    return [_request_row(key, entries[key]) for key in keys]


def _request_row(key: RequestKey, entry: LogEntry) -> tuple[Any, ...]:
    ids = [prediction.id for prediction in entry.predictions]
    return key.model_id, key.request_id, key.environment, entry.body_digest, join_ids(ids), logged_on(ids[0])


def _columns(rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    return tuple(list(column) for column in zip(*rows, strict=True))
