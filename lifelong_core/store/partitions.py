"""Daily partitions of the prediction log on PostgreSQL; days without one go to the default partition."""

from datetime import date, timedelta

import sqlalchemy as sa

from lifelong_core.store import tables
from lifelong_core.store.engine import Database

DEFAULT_PARTITION = "predictions_default"
_LOCK = 0x6C6C_0002
"""Key of the PostgreSQL advisory lock that lets one process make partitions at a time."""
LOCK_TIMEOUT_MILLISECONDS = 3000
"""Attaching waits for those who read the whole log, and who comes to read then waits behind: better try again later."""


def ensure_partitions(database: Database, today: date, *, days_ahead: int = 7) -> tuple[date, ...]:
    """Make the partitions of `today` and of the days ahead that do not exist yet; returns the days made.

    A day of which rows went to the default partition already stays there.

    Raises:
        UnavailableError: somebody reads the log for seconds; nothing is made, and nothing lost.
    """
    if not database.is_postgresql:
        return ()
    days = [today + timedelta(days=ahead) for ahead in range(days_ahead + 1)]
    with database.read() as connection:
        if not _missing(connection, days):
            return ()
    with database.write() as connection:
        connection.execute(sa.text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MILLISECONDS}"))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        made = tuple(day for day in _missing(connection, days) if not _in_default(connection, day))
        for day in made:
            _make(connection, day)
    return made


def _missing(connection: sa.Connection, days: list[date]) -> list[date]:
    tables_there = set(sa.inspect(connection).get_table_names())
    return [day for day in days if _name(day) not in tables_there]


def _in_default(connection: sa.Connection, day: date) -> bool:
    query = sa.text(f"SELECT EXISTS (SELECT 1 FROM {DEFAULT_PARTITION} WHERE logged_on = :day)")  # noqa: S608
    return connection.execute(query, {"day": day}).scalar_one()


def _make(connection: sa.Connection, day: date) -> None:
    """Made apart and then attached, which (unlike PARTITION OF) lets others read and write the log meanwhile."""
    name, log = _name(day), tables.predictions.name
    connection.execute(sa.text(f"CREATE TABLE {name} (LIKE {log} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"))
    bounds = f"FROM ('{day}') TO ('{day + timedelta(days=1)}')"
    connection.execute(sa.text(f"ALTER TABLE {log} ATTACH PARTITION {name} FOR VALUES {bounds}"))


def _name(day: date) -> str:
    return f"predictions_{day:%Y%m%d}"
