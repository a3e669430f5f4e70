"""What all repositories have in common, and parts of statements for several tables."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.database import Database

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


class Repository:
    """Statements on one database; each public method is a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _rows(self, query: sa.Executable) -> Sequence[Row]:
        """Return all rows of a query."""
        with self._database.read() as connection:
            return connection.execute(query).all()

    def _row(self, query: sa.Executable) -> Row | None:
        """Return the row of a query that has at most one row."""
        with self._database.read() as connection:
            return connection.execute(query).one_or_none()


class ArtifactRepository(Repository):
    """A repository whose rows name artifacts."""

    def __init__(self, database: Database, artifacts: Artifacts) -> None:
        super().__init__(database)
        self._artifacts = artifacts
