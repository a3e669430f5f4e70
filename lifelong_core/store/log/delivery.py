"""Delivery of entries from a spool: predictions that were answered earlier and may be in the log already."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from lifelong_core.store.engine.statements import batched, limit_lock_wait
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.store.log.records import LogEntry, Prediction
from lifelong_core.store.log.writing import Repetition, insert_missing_entries
from lifelong_core.store.registry.environments import ensure_environment
from lifelong_core.store.schema import tables

_erased = tables.erased_groups
_LOCK_TIMEOUT_MILLISECONDS = 3000
"""A hung transaction may hold locks on the delivered rows: they were spooled because its outcome was unknown."""


@dataclass(frozen=True)
class DeliveryOutcome:
    """Result of a delivery.

    Attributes:
        written: number of predictions added to the log.
        erased: number left out because their group was erased after they were made.
        repeated: number left out because they were in the log.
        repetitions: those left out because another machine had answered the same request before.
    """

    written: int
    erased: int
    repeated: int
    repetitions: tuple[Repetition, ...] = ()


def deliver_entries(connection: sa.Connection, entries: Sequence[LogEntry]) -> DeliveryOutcome:
    """Write the predictions that the log lacks, within a writing transaction.

    Raises:
        InvalidInputError: an entry holds a value that is not valid for the log.
    """
    if connection.dialect.name == "postgresql":
        limit_lock_wait(connection, _LOCK_TIMEOUT_MILLISECONDS)
        # A concurrent erasure waits for this commit, or is visible here. SQLite has one writer in any case.
        connection.execute(sa.text(f"LOCK TABLE {_erased.name} IN SHARE MODE"))
    left = _without_erased(connection, entries)
    # The predictions were answered, so the limit on the number of environments does not apply.
    for name in sorted({prediction.environment for entry in left for prediction in entry.predictions}):
        ensure_environment(connection, name)
    written, repetitions = insert_missing_entries(connection, left) if left else (0, [])
    kept = sum(len(entry.predictions) for entry in left)
    return DeliveryOutcome(
        written=written,
        erased=sum(len(entry.predictions) for entry in entries) - kept,
        repeated=kept - written - sum(len(repetition.predictions) for repetition in repetitions),
        repetitions=tuple(repetitions),
    )


def _without_erased(connection: sa.Connection, entries: Sequence[LogEntry]) -> list[LogEntry]:
    erased = _erasures(connection, entries)
    if not erased:
        return list(entries)

    def is_kept(prediction: Prediction) -> bool:
        moment = None if prediction.group_hash is None else erased.get(prediction.group_hash)
        return moment is None or moment < logged_at(prediction.id)

    left = [(entry, tuple(filter(is_kept, entry.predictions))) for entry in entries]
    # A key with only some of its rows would return an incomplete answer to a retry: it is removed, as in an erasure.
    return [
        entry if len(kept) == len(entry.predictions) else replace(entry, predictions=kept, request=None)
        for entry, kept in left
        if kept
    ]


def _erasures(connection: sa.Connection, entries: Sequence[LogEntry]) -> dict[bytes, datetime]:
    """Time of the erasure of each erased group among the entries."""
    hashes = list(
        {row.group_hash for entry in entries for row in entry.predictions if row.group_hash is not None}
    )
    erasures: dict[bytes, datetime] = {}
    for batch in batched(hashes):
        query = sa.select(_erased).where(_erased.c.group_hash.in_(batch))
        erasures |= {bytes(row.group_hash): row.erased_at for row in connection.execute(query)}
    return erasures
