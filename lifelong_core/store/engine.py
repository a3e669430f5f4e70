"""One engine with the same transactions on both databases: `read` sees one state, `write` is all or nothing."""

import os
import random
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from lifelong_core.errors import ConfigurationError, ConflictError, InvalidInputError, UnavailableError

WRITER_PATIENCE_SECONDS = 10.0
"""A writer that got no turn within this time gives up (SQLite)."""
_READER_PATIENCE_MILLISECONDS = 10_000
_FILE = "lifelong_file"
"""Key, in the information of a connection, of the identity of the file that it has open."""
_RETRY_SECONDS = (0.0001, 0.0005)
"""SQLite's own busy handler sleeps ever longer, and one of two busy writers starves for seconds. Short waits of random
length keep the longest wait at a few milliseconds."""


class Database:
    """A SQLite file or a PostgreSQL database; threads may share it.

    Raises:
        ConfigurationError: the URL names no such database, or its driver is not installed.
    """

    def __init__(self, url: str, *, writer_patience_seconds: float = WRITER_PATIENCE_SECONDS) -> None:
        self.url = parse_url(url)
        self._patience = writer_patience_seconds
        self._was_open = False
        self.is_postgresql = self.url.get_backend_name() == "postgresql"
        self.engine = self._postgresql_engine() if self.is_postgresql else self._sqlite_engine()

    @contextmanager
    def read(self) -> Generator[sa.Connection, None, None]:
        """A transaction that sees one state of the database, however many queries it makes.

        Raises:
            UnavailableError: the database does not answer.
        """
        with self._explained(), self.engine.connect() as connection:
            if self.is_postgresql:
                connection = connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Generator[sa.Connection, None, None]:
        """A transaction that is committed at the end of the block, or rolled back by any exception.

        Raises:
            ConflictError: somebody else wrote the same key first.
            UnavailableError: the database does not answer, or other writers left no turn.
        """
        with (
            self._explained(),
            self.engine.connect().execution_options(lifelong_writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    def _sqlite_engine(self) -> sa.Engine:
        engine = sa.create_engine(self.url, pool_size=8, max_overflow=56, pool_timeout=10)
        event.listen(engine, "do_connect", self._check_sqlite_file)
        event.listen(engine, "connect", self._prepare_sqlite)
        event.listen(engine, "begin", self._begin_sqlite)
        return engine

    def _postgresql_engine(self) -> sa.Engine:
        try:
            return sa.create_engine(
                self.url,
                pool_size=8,
                max_overflow=24,
                pool_timeout=10,
                # After a restart of the server no request meets a dead connection.
                pool_pre_ping=True,
                connect_args={"connect_timeout": 5, "application_name": "lifelong"},
            )
        except ImportError as error:
            raise ConfigurationError(
                f"the driver of {self.url.drivername} is not installed.",
                field="LIFELONG_DATABASE_URL",
                mend="Install the extra: pip install 'lifelong[postgres]'.",
            ) from error

    def _check_sqlite_file(self, *_: object) -> None:
        # SQLite would make an empty file in the place of one that was removed.
        if self._was_open and _identity(sqlite_file(self.url)) is None:
            raise self._file_is_gone()

    def _file_is_gone(self) -> UnavailableError:
        return UnavailableError(
            f"the database file {sqlite_file(self.url)} was removed or replaced while it was in use.",
            mend="Put it back, or make a new one with `lifelong init`, and restart.",
        )

    def _prepare_sqlite(self, driver: Any, record: Any) -> None:
        """Transactions are begun by us alone; a commit survives the death of any process (WAL, NORMAL)."""
        driver.isolation_level = None
        record.info[_FILE] = _identity(sqlite_file(self.url))
        self._was_open = True
        # Switching a new file to WAL does not wait for others by itself.
        _execute_patiently(driver, "PRAGMA journal_mode = WAL", self._patience)
        driver.execute("PRAGMA synchronous = NORMAL")
        driver.execute("PRAGMA foreign_keys = ON")

    def _begin_sqlite(self, connection: sa.Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if connection.info.get(_FILE) != _identity(sqlite_file(self.url)):
            # What is written to a file without a name is lost when the last process closes it.
            connection.invalidate()
            raise self._file_is_gone()
        if connection.get_execution_options().get("lifelong_writes"):
            _execute_patiently(driver, "BEGIN IMMEDIATE", self._patience)
        else:
            driver.execute("BEGIN")

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        try:
            yield
        except exc.IntegrityError as error:
            raise ConflictError(
                f"somebody else wrote this first ({error.orig}).",
                mend="Read the present state and try again.",
            ) from error
        except exc.DataError as error:
            raise InvalidInputError(f"the database refuses a value: {error.orig}.") from error
        except exc.TimeoutError as error:
            raise UnavailableError("all connections to the database are in use.") from error
        except (exc.ProgrammingError, sqlite3.ProgrammingError):
            # A mistake of ours: nobody else can mend it.
            raise
        except (exc.DBAPIError, sqlite3.Error) as error:
            raise _explain(getattr(error, "orig", error), self.url) from error


def parse_url(url: str) -> sa.URL:
    """The URL with our driver filled in.

    Raises:
        ConfigurationError: not a URL of a SQLite file or of PostgreSQL.
    """
    field = "LIFELONG_DATABASE_URL"
    mend = "Use sqlite:////absolute/path/lifelong.db or postgresql+psycopg://user@host/database."
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError as error:
        raise ConfigurationError("this is not a database URL.", field=field, mend=mend) from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise ConfigurationError(f"the database {backend!r} is not supported.", field=field, mend=mend)
    if not parsed.database or parsed.database == ":memory:":
        raise ConfigurationError(
            "a database in memory cannot be shared by the processes.", field=field, mend="Name a file."
        )
    return parsed


def _identity(file: Path | None) -> tuple[int, int] | None:
    """Device and inode of the file; None where there is none."""
    try:
        status = os.stat(file) if file is not None else None  # noqa: PTH116 - as fast as can be: it is asked for each transaction
    except FileNotFoundError:
        return None
    return None if status is None else (status.st_dev, status.st_ino)


def sqlite_file(url: sa.URL) -> Path | None:
    """The file of a SQLite URL; None for PostgreSQL."""
    if url.get_backend_name() != "sqlite" or url.database is None:
        return None
    return Path(url.database.removeprefix("file:").partition("?")[0])


def _execute_patiently(driver: Any, statement: str, patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                driver.execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(*_RETRY_SECONDS))  # noqa: S311 - jitter, not a secret
            else:
                return
    finally:
        driver.execute(f"PRAGMA busy_timeout = {_READER_PATIENCE_MILLISECONDS}")


def _explain(error: BaseException | None, url: sa.URL) -> ConfigurationError | UnavailableError:
    """What a driver's error means to the person who runs the product."""
    if not isinstance(error, sqlite3.Error):
        place = f"{url.host or 'the local socket'}/{url.database}"
        return UnavailableError(f"the database {place} does not answer: {_first_line(error)}.")
    # Errors that Python's module raises itself carry no code.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return UnavailableError(
            f"the database file {url.database} is locked by another process.",
            mend="Try again; if it stays, find who holds it (a backup, a shell).",
        )
    if code in (
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CORRUPT,
    ):
        return ConfigurationError(
            f"the database file {url.database} cannot be used: {error}.",
            field="LIFELONG_DATABASE_URL",
            mend="Check that the file and its folder exist and can be written by this user.",
        )
    return UnavailableError(f"the database file {url.database} does not answer: {error}.")


def _first_line(error: BaseException | None) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
