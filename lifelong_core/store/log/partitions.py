"""Daily partitions of the prediction log on PostgreSQL; days without one go to the default partition."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta

import sqlalchemy as sa

from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.statements import limit_lock_wait
from lifelong_core.store.log.commit_order import read_log_position
from lifelong_core.store.schema import tables

DEFAULT_PARTITION = "predictions_default"
_NAMES = "predictions_%Y%m%d"
_LOCK = 0x6C6C_0002
"""Key of the PostgreSQL advisory lock that lets one process make partitions at a time."""
LOCK_TIMEOUT_MILLISECONDS = 3000
"""Attaching waits for long reads of the log, and later readers queue behind it; so it gives up and retries later."""
DROP_TIMEOUT_MILLISECONDS = 50
"""Dropping waits for all readers and writers of the log, and later ones queue behind it."""


def ensure_partitions(database: Database, today: date, *, days_ahead: int = 7) -> tuple[date, ...]:
    """Make the partitions of `today` and of the days ahead that do not exist yet; returns the days made.

    A day of which rows went to the default partition already stays there.

    Raises:
        UnavailableError: a read of the log takes seconds; later partitions are not made, and nothing is lost.
    """
    if not database.is_postgresql:
        return ()
    days = [today + timedelta(days=ahead) for ahead in range(days_ahead + 1)]
    with database.read() as connection:
        missing = missing_days(connection, days)
    return tuple(day for day in missing if _ensure(database, day))


def _ensure(database: Database, day: date) -> bool:
    """Whether the partition was made: each in a transaction of its own, because attaching one reads the default
    partition while nobody else may."""
    with database.write() as connection:
        limit_lock_wait(connection, LOCK_TIMEOUT_MILLISECONDS)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        if not missing_days(connection, [day]) or _in_default(connection, day):
            return False
        _make(connection, day)
    return True


def days_with_partition(database: Database, before: date) -> list[date]:
    """The days before that one which have a partition of their own, oldest first; SQLite has none."""
    if not database.is_postgresql:
        return []
    query = sa.text(
        "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
        " WHERE inhparent = CAST(:log AS regclass) AND relname <> :default"
    )
    names = {"log": tables.predictions.name, "default": DEFAULT_PARTITION}
    with database.read() as connection:
        found = connection.execute(query, names).scalars()
        days = [datetime.strptime(name, _NAMES).replace(tzinfo=UTC).date() for name in found]
    return sorted(day for day in days if day < before)


def drop_partition(
    database: Database,
    day: date,
    *,
    environments: Sequence[str],
    before: Callable[[sa.Connection], None],
) -> int | None:
    """Drop the predictions of a day as a whole, if none of them is from another environment than these.

    Args:
        database: PostgreSQL.
        day: which has a partition.
        environments: whose predictions may go.
        before: called in the transaction before it blocks other transactions.

    Returns:
        How many predictions went; None: others are among them, and nothing was done.

    Raises:
        BusyError: a read of the log takes so long that others would have to wait; nothing was done.
    """
    partition = _partition(day)
    others = partition.c.environment.not_in(environments)
    with database.read() as connection:
        log_position = read_log_position(connection)
        if connection.execute(sa.select(sa.literal(1)).where(others).limit(1)).first() is not None:
            return None
        rows = connection.execute(sa.select(sa.func.count()).select_from(partition)).scalar_one()
    with database.write() as connection:
        limit_lock_wait(connection, DROP_TIMEOUT_MILLISECONDS)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        before(connection)
        # Now nobody writes. What was written since we looked, late and from far away, may be of an environment that
        # keeps it.
        connection.execute(sa.text(f"LOCK TABLE ONLY {tables.predictions.name} IN ACCESS EXCLUSIVE MODE"))
        late = sa.select(sa.literal(1)).where(others, partition.c.commit_order >= log_position)
        if connection.execute(late.limit(1)).first() is not None:
            connection.rollback()
            return None
        connection.execute(sa.text(f"DROP TABLE {_name(day)}"))
    return rows


def _partition(day: date) -> sa.TableClause:
    return sa.table(_name(day), *(sa.column(one.name, one.type) for one in tables.predictions.columns))


def missing_days(connection: sa.Connection, days: list[date]) -> list[date]:
    """Those of the days that have no partition."""
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
    return day.strftime(_NAMES)
