"""What all repositories have in common."""

from collections.abc import Sequence

import sqlalchemy as sa

from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.database import Database


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
