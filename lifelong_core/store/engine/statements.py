"""What all repositories have in common, and parts of statements for several tables."""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.database import Database
from lifelong_core.values.errors import InvalidInputError, NotFoundError

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


def id_with_beginning(
    connection: sa.Connection, ids: sa.Column[UUID], beginning: str, *, kind: str, hint: str
) -> UUID:
    """Return the only id of a table that has this beginning.

    Args:
        connection: an open transaction.
        ids: the column of the ids.
        beginning: first characters of an id, or all of them, with or without dashes.
        kind: what a row is, for messages.
        hint: how to list the rows.

    Raises:
        InvalidInputError: no id has this beginning, or several have.
        NotFoundError: there is no such row.
    """
    digits = beginning.replace("-", "").lower()
    if not re.fullmatch("[0-9a-f]{1,32}", digits):
        raise InvalidInputError(
            f"{beginning[:80]!r} is neither an id nor the beginning of one.", field=kind, hint=hint
        )
    first, last = (UUID(digits.ljust(32, filler)) for filler in "0f")
    found = connection.scalars(sa.select(ids).where(ids.between(first, last)).limit(2)).all()
    if not found:
        raise NotFoundError(f"there is no {kind} {beginning[:80]}.", field=kind, hint=hint)
    if len(found) > 1:
        raise InvalidInputError(
            f"several {kind}s begin with {beginning}.", field=kind, hint=f"Give more of the id. {hint}"
        )
    return found[0]


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
