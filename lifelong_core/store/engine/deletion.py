"""Deletion of many rows in batches, so that other writers wait only briefly.

SQLite has one writer at a time: one deletion of a million rows would block the log for seconds. The duration of a batch
sets the size of the next one; a pause follows each batch.
"""

import gc
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import sqlalchemy as sa

from lifelong_core.store.engine.database import Database

Pause: TypeAlias = Callable[[float], bool]
"""Waits for at most the given seconds; True: stop. Example: `threading.Event().wait`."""

AIM_SECONDS = 0.015
"""Target duration of the write lock of SQLite; the margin to the documented 50 ms is for slow disks."""
_FIRST_BATCH = 100
_SMALLEST_BATCH = 50
_LARGEST_BATCH = 5000
_SHORTEST_PAUSE_SECONDS = 0.005
"""Enough for all waiting writers, which retry every 0.5 ms."""


def never_stop(seconds: float) -> bool:
    """A pause that never stops the work."""
    time.sleep(seconds)
    return False


class Batches:
    """Writing transactions whose size adapts to their duration.

    Args:
        database: of the transactions.
        pause: called after each transaction.

    Attributes:
        size: largest number of rows of the next transaction.
        is_stopped: whether a pause returned True.
    """

    def __init__(self, database: Database, pause: Pause) -> None:
        self._database = database
        self._pause = pause
        # On PostgreSQL a deletion blocks no other writer.
        self.size = _LARGEST_BATCH if database.is_postgresql else _FIRST_BATCH
        self.is_stopped = False

    @contextmanager
    def write(self, rows: int) -> Generator[sa.Connection, None, None]:
        """A transaction that deletes `rows` rows, followed by a pause."""
        with _without_garbage_collection(), self._database.write() as connection:
            started = time.perf_counter()
            yield connection
        held = time.perf_counter() - started
        if not self._database.is_postgresql:
            fitting = int(rows * AIM_SECONDS / max(held, 1e-6))
            # The size changes by at most a factor of 2: a slow batch may have waited for a busy core or disk.
            nearby = max(self.size // 2, min(fitting, 2 * self.size))
            self.size = max(_SMALLEST_BATCH, min(nearby, _LARGEST_BATCH))
        self.wait(max(held, _SHORTEST_PAUSE_SECONDS))

    def wait(self, seconds: float) -> None:
        """Pause for other writers."""
        self.is_stopped = self._pause(seconds)


@contextmanager
def _without_garbage_collection() -> Generator[None, None, None]:
    """Disable garbage collection in the block: a full one takes 100 ms in a large process, under the write lock."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def delete_rows(connection: sa.Connection, table: sa.Table, keys: Sequence[tuple[Any, ...]]) -> int:
    """Delete the rows with these primary keys, each in the order of the key's columns; return the number deleted.

    Shorter keys, all of one length, delete every row whose primary key begins with one of them.

    The rows are deleted in sorted order, so that concurrent deletions of the same rows do not deadlock.
    """
    columns: list[sa.Column[Any]] = list(table.primary_key.columns)[: len(keys[0]) if keys else 0]
    named = [column == sa.bindparam(f"key_{column.name}", type_=column.type) for column in columns]
    rows = [
        {f"key_{column.name}": value for column, value in zip(columns, key, strict=True)}
        for key in sorted(keys)
    ]
    return connection.execute(sa.delete(table).where(*named), rows).rowcount if rows else 0
