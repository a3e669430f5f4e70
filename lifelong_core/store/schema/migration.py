"""Creates and upgrades the schema of the database. Migrations only go forward: a backup is the way back."""

from contextlib import suppress
from dataclasses import dataclass

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.errors import BusyError, sqlite_file
from lifelong_core.store.engine.statements import limit_lock_wait
from lifelong_core.store.files import make_data_folder, make_private_file
from lifelong_core.store.schema import version
from lifelong_core.values.errors import SchemaError

_MIGRATION_LOCK = 0x6C6C_0001
"""Key of the PostgreSQL advisory lock that lets one process migrate at a time."""
LOCK_MILLISECONDS = 3000
"""Longest wait for a table that others use (PostgreSQL): meanwhile, all new readers of the table wait, too."""


@dataclass(frozen=True)
class Migration:
    """Revisions before (None: there were no tables) and after an upgrade; equal if the schema was up to date."""

    before: str | None
    after: str


def upgrade(database: Database, revision: str = "head") -> Migration:
    """Upgrade the schema to `revision`; harmless to repeat, also in simultaneous processes.

    Raises:
        ConfigurationError: the folder or the file cannot be written.
        SchemaError: the schema is newer than this version of the product, or older than the first that it upgrades.
        BusyError: another transaction uses a table that would change; nothing has changed.
        UnavailableError: the database does not answer.
    """
    file = sqlite_file(database.url)
    if file is not None:
        make_data_folder(file.parent)
        # SQLite gives its log the mode of the database. If this fails, opening the database reports the cause.
        with suppress(OSError):
            make_private_file(file)
    config = Config()
    config.set_main_option("script_location", str(version.SCRIPTS).replace("%", "%%"))
    try:
        with database.write() as connection:
            if database.is_postgresql:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
                limit_lock_wait(connection, LOCK_MILLISECONDS)
            before = version.current_revision(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            after = version.current_revision(connection)
    except BusyError as error:
        raise BusyError(
            "another transaction uses a table that the upgrade changes; nothing has changed.",
            hint="Try again when long queries have ended (a backup, a report); pg_stat_activity lists them.",
        ) from error
    if after is None:
        raise SchemaError("the migration made no schema.")
    return Migration(before, after)
