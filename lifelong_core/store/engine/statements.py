"""Parts of statements that several tables need."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

Value = TypeVar("Value")

MOST_VALUES = 500
"""That one query looks up: databases limit the number of parameters."""


def batched(values: Sequence[Value], size: int = MOST_VALUES) -> Iterator[Sequence[Value]]:
    """The values in their order, at most `size` at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def upsert_into(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that can say what happens where the key is there, in the words of either database."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return insert(table)


def limit_lock_wait(connection: sa.Connection, milliseconds: int) -> None:
    """Let this transaction give up where it waits longer for a lock (PostgreSQL)."""
    connection.execute(sa.text(f"SET LOCAL lock_timeout = {milliseconds}"))
