"""Translates errors of database drivers into errors with a cause and a hint."""

import os
import sqlite3
from pathlib import Path

import sqlalchemy as sa

from lifelong_core.runtime.redaction import redact
from lifelong_core.values.errors import ConfigurationError, LifelongError, SchemaError, UnavailableError

_FIELD = "LIFELONG_DATABASE_URL"
_FULL_BELOW_BYTES = 64 * 1024
"""SQLite reports a full disk in some cases as 'I/O error'; free space below this bound shows the cause."""
_NO_PERMISSION = "42501"
_UNDEFINED_TABLE = "42P01"
_READ_ONLY = "25006"
_DISK_FULL = "53100"
_TOO_MANY_CONNECTIONS = "53300"
_LOCK_TIMEOUT = "55P03"


URL_HINT = "Use sqlite:////absolute/path/lifelong.db or postgresql+psycopg://user@host/database."


class BusyError(UnavailableError):
    """Other transactions hold a required lock."""


def sqlite_file(url: sa.URL) -> Path | None:
    """The file of a SQLite URL; None for PostgreSQL."""
    if url.get_backend_name() != "sqlite" or url.database is None:
        return None
    file = url.database
    return Path(file.removeprefix("file:").partition("?")[0] if file.startswith("file:") else file)


def translate_error(error: BaseException | None, url: sa.URL) -> LifelongError:
    """Translate a driver's error."""
    file = sqlite_file(url)
    if isinstance(error, sqlite3.Error) and file is not None:
        return _explain_sqlite(error, file)
    return _explain_postgresql(error, f"{url.host or 'the local socket'}/{url.database}")


def url_error(error: BaseException | None) -> ConfigurationError:
    """Return the error for a URL that a driver refuses."""
    return ConfigurationError(
        f"this is not a URL of a database: {_first_line(error)}.", field=_FIELD, hint=URL_HINT
    )


def lies_in_the_database(error: BaseException | None) -> bool:
    """Whether a PostgreSQL user lacks a permission, or a table is missing, as during a restore; the driver reports both
    as errors of the statement."""
    return getattr(error, "sqlstate", None) in (_NO_PERMISSION, _UNDEFINED_TABLE)


def _explain_sqlite(error: sqlite3.Error, file: Path) -> LifelongError:
    # Errors raised by Python's module, not by SQLite, have no code.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return UnavailableError(
            f"the database file {file} is locked by another process.",
            hint=f"Try again; if it stays, find the process that holds it (a backup, a shell): `fuser {file}`.",
        )
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(file.parent)):
        return UnavailableError(
            f"the disk of the database file {file} is full.",
            hint="Make room there; nothing that was committed is lost.",
        )
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return ConfigurationError(
            f"the database file {file} is damaged, or not a database at all: {error}.",
            field=_FIELD,
            hint="Restore it from a backup, without an older -wal file.",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        reason, hint = _why_not_writable(file)
        return ConfigurationError(reason or f"the database file {file}: {error}.", field=_FIELD, hint=hint)
    if code == sqlite3.SQLITE_IOERR:
        return UnavailableError(
            f"the disk of the database file {file} fails: {error}.", hint="Look into the system's log."
        )
    return UnavailableError(f"the database file {file} does not answer: {error}.")


def _why_not_writable(file: Path) -> tuple[str, str]:
    """Return why a file cannot be opened for writing, and the hint; SQLite does not report it."""
    folder = file.parent
    if not folder.is_dir():
        return f"the folder {folder} of the database does not exist.", "Make it with `lifelong init`."
    if file.is_dir():
        return f"{file} is a folder, not a database file.", "Name a file in it."
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return (
            f"the database file {file} is on a file system that is mounted read-only.",
            "Mount it for writing, or move the data to another disk.",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return (
            f"this user cannot write to the folder {folder}, where SQLite keeps files beside the database.",
            "Give the folder to the user that runs the product.",
        )
    if not file.exists():
        return f"there is no database file {file}.", "Make it with `lifelong init`."
    if not os.access(file, os.R_OK | os.W_OK):
        return (
            f"this user cannot write to the database file {file}.",
            "Give the file to the user that runs the product.",
        )
    return (
        f"the database file {file} is read-only here.",
        "Open it for writing: no mode=ro in the URL, no immutable file (`lsattr`).",
    )


def _is_full(folder: Path) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _FULL_BELOW_BYTES


def _explain_postgresql(error: BaseException | None, place: str) -> LifelongError:
    said = _first_line(error)
    state = getattr(error, "sqlstate", None)
    # A standby refuses the start of a writing transaction, with another code.
    if state == _READ_ONLY or "during recovery" in said:
        return ConfigurationError(
            f"the database {place} takes no changes: {said}.",
            field=_FIELD,
            hint="Name the primary server, not a standby, and see that default_transaction_read_only is off.",
        )
    if state == _NO_PERMISSION:
        return ConfigurationError(
            f"the database {place} does not allow this: {said}.",
            field=_FIELD,
            hint="Give the user all rights on the tables, best by making it their owner.",
        )
    if state == _UNDEFINED_TABLE:
        return SchemaError(
            f"the database {place} lacks a table: {said}.",
            hint="Finish the restore that is under way, or restore the backup.",
        )
    if state == _LOCK_TIMEOUT:
        return BusyError(f"others use what would have to be locked: {said}.", hint="Try again later.")
    if state == _DISK_FULL:
        return UnavailableError(
            f"the disk of the database {place} is full: {said}.", hint="Make room on the server."
        )
    if state == _TOO_MANY_CONNECTIONS:
        return UnavailableError(
            f"the database {place} has no connection left: {said}.",
            hint="Raise max_connections on the server, or run fewer workers.",
        )
    return UnavailableError(f"the database {place} does not answer: {said}.")


def _first_line(error: BaseException | None) -> str:
    return redact(str(error).strip().partition("\n")[0].rstrip("."))
