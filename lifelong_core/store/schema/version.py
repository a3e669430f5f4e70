"""Checks that the database's schema fits this version of the product.

Every process imports this module at its start; only `migration` loads Alembic.
"""

from pathlib import Path

import sqlalchemy as sa

from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.errors import sqlite_file
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConfigurationError, SchemaError

SCRIPTS = Path(__file__).parent / "migrations"

_VERSION = sa.table("alembic_version", sa.column("version_num"))
_FIRST_TABLE = tables.registry_revision.name
"""Table that every schema has."""


def revisions() -> list[str]:
    """The revisions of this version, oldest first: the numbers in the names of the migrations."""
    return sorted(file.name.partition("_")[0] for file in (SCRIPTS / "versions").glob("[0-9]*.py"))


def check_schema(database: Database) -> None:
    """Make sure that the database has the schema of this version.

    Raises:
        SchemaError: there is no schema, or it is older or newer than that of this version.
        ConfigurationError: the file cannot be reached.
        UnavailableError: the database does not answer.
    """
    file = sqlite_file(database.url)
    if file is not None and not _is_there(file):
        raise SchemaError(f"there is no database file {file}.", hint="Make it with `lifelong init`.")
    with database.read() as connection:
        current = current_revision(connection)
    if current is None:
        raise SchemaError("the database is empty.", hint="Make its tables with `lifelong init`.")
    if current != revisions()[-1]:
        raise SchemaError(
            f"the database has the older schema {current}.",
            hint="Bring it up to date with `lifelong upgrade`.",
        )


def current_revision(connection: sa.Connection) -> str | None:
    """The database's revision; None if it has no tables yet.

    Raises:
        SchemaError: this version has no such revision, or the table of the revision is damaged.
    """
    inspector = sa.inspect(connection)
    if not inspector.has_table(_VERSION.name):
        return None
    rows = connection.scalars(sa.select(_VERSION.c.version_num)).all()
    if len(rows) > 1 or (not rows and inspector.has_table(_FIRST_TABLE)):
        raise SchemaError(
            f"the table {_VERSION.name} holds {len(rows)} rows where one says which schema the database has.",
            hint="Something else changed it, or a restore was cut short: restore the backup.",
        )
    known = revisions()
    current = rows[0] if rows else None
    if current is None or current in known:
        return current
    if current < known[0]:
        raise SchemaError(
            f"the database has the schema {current}; this version expects {known[-1]} and cannot upgrade a schema"
            f" before {known[0]}.",
            hint="Export what you need with the version that made it (`lifelong export`). Then start anew: move that"
            " database away, or name another one in LIFELONG_DATABASE_URL, and run `lifelong init`.",
        )
    raise SchemaError(
        f"the database has the schema {current}, which a newer version of the product made.",
        hint="Run that version, or restore the backup made before its upgrade.",
    )


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError as error:
        raise ConfigurationError(
            f"the database file {file} cannot be reached: {error.strerror}.",
            field="LIFELONG_DATABASE_URL",
            hint="Give the folder to the user that runs the product.",
        ) from error
