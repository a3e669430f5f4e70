"""Databases that are really away, for as long as a block runs."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.postgresql import MortalPostgreSQL


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another connection holds the write lock of a SQLite file."""
    connection = sqlite3.connect(file, isolation_level=None, timeout=10)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


@contextmanager
def killed(server: MortalPostgreSQL) -> Iterator[None]:
    """SIGKILL to the server; afterwards it is started again."""
    server.kill()
    yield
    server.start()
