"""Environments: where predictions come from. They are created on first use, up to a limit."""

import sqlalchemy as sa

from lifelong_core.errors import ConflictError, NotFoundError
from lifelong_core.store import tables
from lifelong_core.store.engine import Database
from lifelong_core.store.records import check_name
from lifelong_core.store.registry import bump_revision, changing_registry
from lifelong_core.store.rows import now

_NAMED = 20
"""Environments that a message lists; of more it gives the number."""


class Environments:
    """Creates and lists environments; `default` is always there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self, name: str, *, limit: int) -> None:
        """Create the environment unless it exists.

        Args:
            name: of the environment.
            limit: the largest number of environments there may be, `default` included.

        Raises:
            InvalidInputError: the name is not legal.
            ConflictError: there are `limit` environments already.
        """
        check_name(name, field="environment")
        if name in self.list():
            return
        with changing_registry(self._database) as connection:
            existing = _names(connection)
            if name in existing:
                return
            if len(existing) >= limit:
                raise ConflictError(
                    f"there are {len(existing)} environments already, so {name!r} is not created.",
                    field="environment",
                    mend="Use one of those, or raise LIFELONG_MAXIMUM_ENVIRONMENTS.",
                )
            _insert(connection, name)

    def list(self) -> list[str]:
        """The names of all environments, sorted."""
        with self._database.read() as connection:
            return _names(connection)


def ensure_environment(connection: sa.Connection, name: str) -> None:
    """Create the environment, whatever the limit, within a writing transaction: a person named it."""
    check_name(name, field="environment")
    if name not in _names(connection):
        bump_revision(connection)
        # Only now nobody else can create it at the same time.
        if name not in _names(connection):
            _insert(connection, name)


def expect_environment(connection: sa.Connection, name: str, *, mend: str) -> None:
    """Make sure that an environment exists, so that a misspelt name is not taken for another place.

    Args:
        connection: of a transaction.
        name: of the environment.
        mend: what the caller can do if there is none of that name.

    Raises:
        InvalidInputError: the name is not legal.
        NotFoundError: there is no such environment; the message names those that there are.
    """
    check_name(name, field="environment")
    known = _names(connection)
    if name in known:
        return
    names = ", ".join(known[:_NAMED]) + (f" and {len(known) - _NAMED} more" if len(known) > _NAMED else "")
    raise NotFoundError(
        f"there is no environment {name!r}; known are {names}.", field="environment", mend=mend
    )


def _names(connection: sa.Connection) -> list[str]:
    names = tables.environments.c.name
    return sorted(connection.execute(sa.select(names)).scalars())


def _insert(connection: sa.Connection, name: str) -> None:
    connection.execute(sa.insert(tables.environments), {"name": name, "created_at": now()})
