"""Deletion of many rows in batches, so that other writers hardly wait.

SQLite has one writer at a time: to delete a million rows at once would block the log for seconds. The size of each
batch follows from the duration of the last one; a pause follows each batch.
"""

import gc
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import sqlalchemy as sa

from lifelong_core.store.engine.database import Database

Pause: TypeAlias = Callable[[float], bool]
"""Waits for at most so many seconds; True: stop. `threading.Event().wait` is one."""

AIM_SECONDS = 0.015
"""The write lock of SQLite is held about so long; up to the promised 50 ms there is room for a slow disk."""
_FIRST_BATCH = 100
_SMALLEST_BATCH = 50
_LARGEST_BATCH = 5000
_SHORTEST_PAUSE_SECONDS = 0.005
"""Enough for all waiting writers, which retry every half a millisecond."""


def never_stop(seconds: float) -> bool:
    """A pause that never stops the work."""
    time.sleep(seconds)
    return False


class Batches:
    """Writing transactions of a measured size.

    Args:
        database: in which they write.
        pause: called after each.

    Attributes:
        size: how many rows the next one may delete.
        is_stopped: a pause asked to stop.
    """

    def __init__(self, database: Database, pause: Pause) -> None:
        self._database = database
        self._pause = pause
        # On PostgreSQL, a deletion blocks no other writer.
        self.size = _LARGEST_BATCH if database.is_postgresql else _FIRST_BATCH
        self.is_stopped = False

    @contextmanager
    def write(self, rows: int) -> Generator[sa.Connection, None, None]:
        """A transaction that deletes so many rows, and the pause after it."""
        with _without_garbage_collection(), self._database.write() as connection:
            started = time.perf_counter()
            yield connection
        held = time.perf_counter() - started
        if not self._database.is_postgresql:
            fitting = int(rows * AIM_SECONDS / max(held, 1e-6))
            # A single batch that took long may have waited for a core or a disk that others used.
            nearby = max(self.size // 2, min(fitting, 2 * self.size))
            self.size = max(_SMALLEST_BATCH, min(nearby, _LARGEST_BATCH))
        self.wait(max(held, _SHORTEST_PAUSE_SECONDS))

    def wait(self, seconds: float) -> None:
        """Let others work."""
        self.is_stopped = self._pause(seconds)


@contextmanager
def _without_garbage_collection() -> Generator[None, None, None]:
    """A full collection takes 100 ms in a process with many objects, and would take them while others wait."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def delete_rows(connection: sa.Connection, table: sa.Table, keys: Sequence[tuple[Any, ...]]) -> int:
    """Delete the rows with these primary keys, each in the order of the key's columns; how many were there.

    In one order everywhere: two that delete the same rows wait for each other, but never in a circle.
    """
    columns: list[sa.Column[Any]] = list(table.primary_key.columns)
    named = [column == sa.bindparam(f"key_{column.name}", type_=column.type) for column in columns]
    rows = [
        {f"key_{column.name}": value for column, value in zip(columns, key, strict=True)}
        for key in sorted(keys)
    ]
    return connection.execute(sa.delete(table).where(*named), rows).rowcount if rows else 0
