"""What a spool brings: predictions that were answered a while ago, and that the log may have taken already."""

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
"""A transaction that hangs may hold the very rows that are delivered, because its outcome was not known."""


@dataclass(frozen=True)
class DeliveryOutcome:
    """What became of the predictions.

    Attributes:
        written: now in the log, and not before.
        erased: left out, because their group was erased after they were made.
        repeated: left out, because they were in the log.
        repetitions: left out, because another machine had answered the same request before.
    """

    written: int
    erased: int
    repeated: int
    repetitions: tuple[Repetition, ...] = ()


def deliver_entries(connection: sa.Connection, entries: Sequence[LogEntry]) -> DeliveryOutcome:
    """Write what is missing in the log, within a writing transaction.

    Raises:
        InvalidInputError: an entry holds a value that the log does not take.
    """
    if connection.dialect.name == "postgresql":
        limit_lock_wait(connection, _LOCK_TIMEOUT_MILLISECONDS)
        # Whoever erases a group waits until this is committed, or is seen here: SQLite has one writer anyway.
        connection.execute(sa.text(f"LOCK TABLE {_erased.name} IN SHARE MODE"))
    left = _without_erased(connection, entries)
    # The predictions were answered: there is no asking any longer whether there may be one environment more.
    for name in sorted({prediction.environment for entry in left for prediction in entry.predictions}):
        ensure_environment(connection, name)
    written, repetitions = insert_missing_entries(connection, left) if left else (0, [])
    kept = sum(len(entry.predictions) for entry in left)
    return DeliveryOutcome(
        written=written,
        erased=sum(len(entry.predictions) for entry in entries) - kept,
        repeated=kept - written - sum(len(one.predictions) for one in repetitions),
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
    # A key that names only some of its rows would give a retry the wrong ones: it goes, as in an erasure.
    return [
        entry if len(kept) == len(entry.predictions) else replace(entry, predictions=kept, request=None)
        for entry, kept in left
        if kept
    ]


def _erasures(connection: sa.Connection, entries: Sequence[LogEntry]) -> dict[bytes, datetime]:
    """When which of the groups was erased, those that were."""
    hashes = list(
        {row.group_hash for entry in entries for row in entry.predictions if row.group_hash is not None}
    )
    found: dict[bytes, datetime] = {}
    for some in batched(hashes):
        query = sa.select(_erased).where(_erased.c.group_hash.in_(some))
        found |= {bytes(row.group_hash): row.erased_at for row in connection.execute(query)}
    return found
