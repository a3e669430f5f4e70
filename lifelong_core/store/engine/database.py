"""One engine with equal transactions on both databases: `read` sees one snapshot, `write` is atomic."""

import hashlib
import random
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.pool import ConnectionPoolEntry

from lifelong_core.store.engine.errors import (
    URL_HINT,
    lies_in_the_database,
    sqlite_file,
    translate_error,
    url_error,
)
from lifelong_core.store.engine.kept_connection import KeptConnection
from lifelong_core.store.files import file_identity
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError, UnavailableError

Durability: TypeAlias = Literal["process", "power"]
"""Failures that a commit survives: the end of any process, or a power failure, too."""

WRITER_PATIENCE_SECONDS = 10.0
"""Longest wait of a writer for the write lock (SQLite)."""
_READER_PATIENCE_MILLISECONDS = 10_000
_LOG_BYTES = 64 * 2**20
"""Size to which SQLite truncates its write-ahead log after a long read made it larger; without a limit, the file stays
large until the last process closes it."""
_FILE = "lifelong_file"
"""Key, in the info of a connection, of the identity of its open file."""
_USED = "lifelong_used"
"""Key, in the info of a connection, of the time of its last return to the pool."""
_TRUSTED_SECONDS = 1.0
"""For this time after its last use, a connection is used without a ping (PostgreSQL)."""
_WRITES = "READ COMMITTED"
"""Isolation of writing transactions, independent of settings of server and user: after a wait for a lock they see the
rows that the other transaction committed. With a stricter one they would fail or not see them."""
_RETRY_SECONDS = (0.0001, 0.0005)
"""SQLite's busy handler sleeps increasingly long, so that one of two busy writers may wait for seconds. Short random
waits limit the longest wait to a few milliseconds."""

NETWORK = {"tcp_user_timeout": 10_000, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""The timeout is in milliseconds, idle time and interval in seconds; client and server use them. Without them, a query
to a lost server machine hangs for 15 minutes, even if the server returns earlier, and a server keeps the transactions
and locks of a lost client for two hours."""


class Database:
    """A SQLite file or a PostgreSQL database; threads may share it.

    Args:
        url: of the database.
        writer_patience_seconds: longest wait of a writer for the write lock (SQLite).
        durability: failures that a commit survives. On SQLite, `process` leaves the time of the disk write to the
            system (synchronous = NORMAL), `power` waits for the disk at every commit (FULL). On PostgreSQL a commit
            always waits for the disk (synchronous_commit is never off): without it, a crash of the server process
            alone would lose the last commits.

    Raises:
        ConfigurationError: the URL is of no supported database, or its driver is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        writer_patience_seconds: float = WRITER_PATIENCE_SECONDS,
        durability: Durability = "process",
    ) -> None:
        self.url = parse_url(url)
        self.durability: Durability = durability
        self._patience = writer_patience_seconds
        self._was_open = False
        self._is_closed = False
        self._file = sqlite_file(self.url)
        self.is_postgresql = self.url.get_backend_name() == "postgresql"
        try:
            self.engine = self._postgresql_engine() if self.is_postgresql else self._sqlite_engine()
        except exc.ArgumentError as error:
            raise url_error(error) from error
        event.listen(self.engine, "checkin", self._close_if_late)
        self._kept = KeptConnection(self.engine)

    @contextmanager
    def read(self) -> Generator[sa.Connection, None, None]:
        """A transaction in which all queries see the same snapshot of the database.

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
            ConflictError: another transaction wrote the same key first.
            UnavailableError: the database does not answer, or the write lock was not free in time.
        """
        with (
            self._explained(),
            self.engine.connect().execution_options(lifelong_writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def write_at_once(self) -> Generator[sa.Connection, None, None]:
        """As `write`, for a block with one statement on PostgreSQL: autocommit saves the round trips to begin and to
        commit a transaction.

        Raises:
            ConflictError: another transaction wrote the same key first.
            UnavailableError: the database does not answer, or the write lock was not free in time.
        """
        if not self.is_postgresql:
            with self.write() as connection:
                yield connection
            return
        with self._explained(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def write_on_driver(self) -> Generator[sqlite3.Connection, None, None]:
        """As `write`, on a connection of SQLite's driver: half of the time of a small transaction.

        Raises:
            ConflictError: another transaction wrote the same key first.
            UnavailableError: the database does not answer, or the write lock was not free in time.
        """
        with self._explained(), self._kept.lend() as pooled:
            driver: Any = pooled.dbapi_connection
            if pooled.info.get(_FILE) != file_identity(self._file):
                pooled.invalidate()
                raise self._file_is_gone()
            _execute_patiently(driver, "BEGIN IMMEDIATE", self._patience)
            # The pool rolls back what is not committed.
            yield driver
            driver.commit()

    def close(self) -> None:
        """Close all connections; one that is lent follows at the end of its transaction."""
        self._is_closed = True
        self._kept.close()
        self.engine.dispose()

    def empty_write_ahead_log(self) -> bool:
        """Move all commits of SQLite from the write-ahead log to the database file, so that no old page remains.

        Returns:
            False: a reader held an older snapshot for too long. Later commits overwrite the log in any case.
        """
        if self.is_postgresql:
            return True
        deadline = time.monotonic() + self._patience
        with self._explained(), closing(self.engine.raw_connection()) as connection:
            driver: Any = connection.dbapi_connection
            # The passive checkpoint needs no lock and shortens the second one, which blocks writers.
            driver.execute("PRAGMA wal_checkpoint(PASSIVE)").close()
            driver.execute("PRAGMA busy_timeout = 0").close()
            try:
                while driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(random.uniform(*_RETRY_SECONDS))  # noqa: S311 - jitter, not a secret
                return True
            finally:
                driver.execute(f"PRAGMA busy_timeout = {_READER_PATIENCE_MILLISECONDS}").close()

    def _sqlite_engine(self) -> sa.Engine:
        engine = sa.create_engine(
            self.url, pool_size=8, max_overflow=56, pool_timeout=10, hide_parameters=True
        )
        event.listen(engine, "do_connect", self._check_sqlite_file)
        event.listen(engine, "connect", self._prepare_sqlite)
        event.listen(engine, "begin", self._begin_sqlite)
        return engine

    def _postgresql_engine(self) -> sa.Engine:
        try:
            engine = sa.create_engine(
                self.url,
                pool_size=8,
                max_overflow=24,
                pool_timeout=10,
                isolation_level=_WRITES,
                # Errors are logged; request ids, group hashes and logits must not be.
                hide_parameters=True,
                connect_args={"connect_timeout": 5, "application_name": "lifelong", **NETWORK},
            )
        except ImportError as error:
            raise ConfigurationError(
                f"the driver of {self.url.drivername} is not installed.",
                field="LIFELONG_DATABASE_URL",
                hint='Install the extra, in the clone of lifelong: pip install -c constraints.txt -e ".[postgres]".',
            ) from error
        event.listen(engine, "connect", _prepare_postgresql)
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", partial(_check_alive, engine.dialect))
        return engine

    def _close_if_late(self, _: object, record: ConnectionPoolEntry) -> None:
        """Close a connection that is returned after the end: a pool that was disposed would keep it open."""
        if self._is_closed:
            record.invalidate()

    def _check_sqlite_file(self, *_: object) -> None:
        # SQLite would create an empty file in place of a removed one.
        if self._was_open and file_identity(self._file) is None:
            raise self._file_is_gone()

    def _file_is_gone(self) -> UnavailableError:
        return UnavailableError(
            f"the database file {self._file} was removed or replaced while it was in use.",
            hint="Put it back, or make a new one with `lifelong init`, and restart.",
        )

    def _prepare_sqlite(self, driver: Any, record: Any) -> None:
        """Set a new connection up: explicit transactions, WAL, and the durability of commits."""
        driver.isolation_level = None
        record.info[_FILE] = file_identity(self._file)
        self._was_open = True
        # SQLite's switch of a new file to WAL does not wait for locks.
        _execute_patiently(driver, "PRAGMA journal_mode = WAL", self._patience)
        if self.durability == "power":
            driver.execute("PRAGMA synchronous = FULL")
            # Only for macOS: there, fsync alone leaves the data in the disk's cache, at checkpoints too.
            driver.execute("PRAGMA fullfsync = ON")
        else:
            # Checkpoints wait for the disk in both cases: no power failure damages the file.
            driver.execute("PRAGMA synchronous = NORMAL")
        driver.execute("PRAGMA foreign_keys = ON")
        driver.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")

    def _begin_sqlite(self, connection: sa.Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if connection.info.get(_FILE) != file_identity(self._file):
            # Commits to an unlinked file are lost when the last process closes it.
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
        except (exc.IntegrityError, sqlite3.IntegrityError) as error:
            raise ConflictError(
                f"another transaction wrote this first ({_without_values(error)}).",
                hint="Read the present state and try again.",
            ) from error
        except exc.DataError as error:
            raise InvalidInputError(f"the database refuses a value: {_without_values(error)}.") from error
        except exc.TimeoutError as error:
            raise UnavailableError("all connections to the database are in use.") from error
        except (exc.ProgrammingError, sqlite3.ProgrammingError) as error:
            cause = getattr(error, "orig", error)
            if lies_in_the_database(cause):
                raise translate_error(cause, self.url) from error
            if isinstance(error, exc.ProgrammingError) and error.statement is None:  # the connection failed
                raise url_error(cause) from error
            # A bug of the product; no hint would help.
            raise
        except (exc.DBAPIError, sqlite3.Error) as error:
            raise translate_error(getattr(error, "orig", error), self.url) from error


def parse_url(url: str) -> sa.URL:
    """Parse a database URL; set the driver of the product.

    Raises:
        ConfigurationError: the URL is not of a SQLite file or of PostgreSQL.
    """
    field, hint = "LIFELONG_DATABASE_URL", URL_HINT
    try:
        parsed = sa.make_url(url)
    except (
        exc.ArgumentError,
        ValueError,
    ):  # a port that is no number; the cause may quote the URL and is left out
        raise ConfigurationError("this is not a database URL.", field=field, hint=hint) from None
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise ConfigurationError(f"the database {backend!r} is not supported.", field=field, hint=hint)
    if not parsed.database or parsed.database == ":memory:":
        raise ConfigurationError(
            "a database in memory cannot be shared by the processes.", field=field, hint="Name a file."
        )
    if parsed.host or parsed.username:
        raise ConfigurationError(
            "a SQLite file has no host.", field=field, hint="Begin with sqlite:/// and the path of the file."
        )
    return parsed.set(drivername="sqlite")


def database_origin(url: str) -> str:
    """Return a digest that identifies the database, independent of its credentials."""
    parsed = parse_url(url)
    hosts = parsed.normalized_query.get("host", ())
    parts = (parsed.get_backend_name(), parsed.host, parsed.port, parsed.database, *hosts)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _without_values(error: exc.DBAPIError | sqlite3.Error) -> str:
    """First line of a driver's message; in later lines PostgreSQL quotes values."""
    return str(getattr(error, "orig", error)).partition("\n")[0]


def prepare_session(driver: Any) -> None:
    """Set on the server: synchronous commits if they are off, the network timeouts of the client, and the isolation of
    single statements."""
    wanted = {f"tcp_{name.removeprefix('tcp_')}": str(value) for name, value in NETWORK.items()}
    wanted["default_transaction_isolation"] = _WRITES.lower()
    wanted["synchronous_commit"] = "on"
    driver.execute(
        "SELECT set_config(name, setting, false) FROM unnest(%s::text[], %s::text[]) AS wanted (name, setting)"
        " WHERE name <> 'synchronous_commit' OR current_setting(name) = 'off'",
        (list(wanted), list(wanted.values())),
    )
    driver.commit()


def _prepare_postgresql(driver: Any, record: Any) -> None:
    prepare_session(driver)
    _note_use(driver, record)


def _note_use(_: object, record: Any) -> None:
    record.info[_USED] = time.monotonic()


def _check_alive(dialect: sa.Dialect, driver: Any, record: Any, _: object) -> None:
    """Ping an idle connection before use, since a restart of the server may have closed it. Under load, a ping would be
    a fourth of a transaction's round trips; there, the first failed transaction renews all connections."""
    if time.monotonic() - record.info[_USED] < _TRUSTED_SECONDS:
        return
    try:
        dialect.do_ping(driver)
    except dialect.loaded_dbapi.Error as error:
        raise exc.DisconnectionError from error


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
