"""The database's schema: bring it up to date, or say why it does not fit this version of the product."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from lifelong_core.errors import ConfigurationError, SchemaError
from lifelong_core.store.database_errors import sqlite_file
from lifelong_core.store.engine import Database

_SCRIPTS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 0x6C6C_0001
"""Key of the PostgreSQL advisory lock that lets one process migrate at a time."""


@dataclass(frozen=True)
class Migration:
    """What `upgrade` did: the revision before (None: there were no tables) and after; equal if nothing was to do."""

    before: str | None
    after: str


def upgrade(database: Database, revision: str = "head") -> Migration:
    """Bring the schema up to `revision`; doing it twice, or from two processes at once, is harmless.

    Raises:
        ConfigurationError: the folder or the file cannot be written.
        SchemaError: a newer version of the product made the database.
        UnavailableError: the database does not answer.
    """
    file = sqlite_file(database.url)
    if file is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"the folder {file.parent} cannot be made: {error.strerror}.",
                field="LIFELONG_DATA_DIRECTORY",
                mend="Choose a folder that this user can write to, on a disk with room.",
            ) from error
    scripts = ScriptDirectory(str(_SCRIPTS))
    with _migrating(database) as (config, connection):
        before = _current_revision(connection, scripts)
        command.upgrade(config, revision)
        after = _current_revision(connection, scripts)
    if after is None:
        raise SchemaError("the migration made no schema.")
    return Migration(before, after)


def downgrade(database: Database, revision: str) -> None:
    """Take the schema back to `revision` ("base": nothing is left)."""
    with _migrating(database) as (config, _):
        command.downgrade(config, revision)


def check_schema(database: Database) -> None:
    """Say whether the database has the schema of this version.

    Raises:
        SchemaError: there is none, or it is older or newer than this version's.
        ConfigurationError: the file cannot be reached.
        UnavailableError: the database does not answer.
    """
    file = sqlite_file(database.url)
    if file is not None and not _is_there(file):
        raise SchemaError(f"there is no database file {file}.", mend="Make it with `lifelong init`.")
    scripts = ScriptDirectory(str(_SCRIPTS))
    with database.read() as connection:
        current = _current_revision(connection, scripts)
    if current is None:
        raise SchemaError("the database is empty.", mend="Make its tables with `lifelong init`.")
    if current != scripts.get_current_head():
        raise SchemaError(
            f"the database has the older schema {current}.",
            mend="Bring it up to date with `lifelong upgrade`.",
        )


def _current_revision(connection: sa.Connection, scripts: ScriptDirectory) -> str | None:
    """The database's revision; None if it has no tables yet.

    Raises:
        SchemaError: this version does not know the revision.
    """
    current = MigrationContext.configure(connection).get_current_revision()
    if current is None or current in {script.revision for script in scripts.walk_revisions()}:
        return current
    raise SchemaError(
        f"the database has the schema {current}, which a newer version of the product made.",
        mend="Run that version, or restore the backup made before its upgrade.",
    )


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError as error:
        raise ConfigurationError(
            f"the database file {file} cannot be reached: {error.strerror}.",
            field="LIFELONG_DATABASE_URL",
            mend="Give the folder to the user that runs the product.",
        ) from error


@contextmanager
def _migrating(database: Database) -> Generator[tuple[Config, sa.Connection], None, None]:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    with database.write() as connection:
        if database.is_postgresql:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        _current_revision(connection, ScriptDirectory.from_config(config))
        config.attributes["connection"] = connection
        yield config, connection
