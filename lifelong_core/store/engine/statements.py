"""Parts of statements for several tables."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

Value = TypeVar("Value")

MOST_VALUES = 500
"""Largest number of values in one query: databases limit the number of parameters."""


def batched(values: Sequence[Value], size: int = MOST_VALUES) -> Iterator[Sequence[Value]]:
    """Yield the values in order, in batches of at most `size`."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def upsert_into(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT of the database's dialect with `on_conflict` clauses."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return insert(table)


def limit_lock_wait(connection: sa.Connection, milliseconds: int) -> None:
    """Set the lock timeout of this transaction (PostgreSQL)."""
    connection.execute(sa.text(f"SET LOCAL lock_timeout = {milliseconds}"))
