"""Daily partitions of the prediction log on PostgreSQL; rows of other days go to the default partition."""

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
"""Key of the PostgreSQL advisory lock for creating and dropping partitions."""
LOCK_TIMEOUT_MILLISECONDS = 3000
"""Attaching waits for long reads of the log, and later readers queue behind it; so it times out and is retried."""
DROP_TIMEOUT_MILLISECONDS = 50
"""Dropping waits for all readers and writers of the log, and later ones queue behind it."""


def ensure_partitions(database: Database, today: date, *, days_ahead: int = 7) -> tuple[date, ...]:
    """Create the missing partitions of `today` and of the days ahead; return their days.

    A day with rows in the default partition stays there.

    Raises:
        UnavailableError: a read of the log takes seconds; later partitions are not created, and no row is lost.
    """
    if not database.is_postgresql:
        return ()
    days = [today + timedelta(days=ahead) for ahead in range(days_ahead + 1)]
    with database.read() as connection:
        missing = missing_days(connection, days)
    return tuple(day for day in missing if _ensure(database, day))


def _ensure(database: Database, day: date) -> bool:
    """Create a partition in its own transaction, because attaching it reads the default partition under an exclusive
    lock; return whether it was created."""
    with database.write() as connection:
        limit_lock_wait(connection, LOCK_TIMEOUT_MILLISECONDS)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        if not missing_days(connection, [day]) or _in_default(connection, day):
            return False
        _make(connection, day)
    return True


def days_with_partition(database: Database, before: date) -> list[date]:
    """Return the days before `before` that have a partition, oldest first; SQLite has none."""
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
    """Drop the partition of a day, if all its predictions are from these environments.

    Args:
        database: PostgreSQL.
        day: of the partition.
        environments: with expired predictions.
        before: called in the transaction before it locks the log.

    Returns:
        The number of dropped predictions; None: the day has predictions of other environments and was not dropped.

    Raises:
        BusyError: the lock was not free within its short timeout; the partition was not dropped.
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
        # The lock excludes writers. Late rows, written since the check above, may be of an environment that keeps
        # them.
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
    """Return the days without a partition."""
    tables_there = set(sa.inspect(connection).get_table_names())
    return [day for day in days if _name(day) not in tables_there]


def _in_default(connection: sa.Connection, day: date) -> bool:
    query = sa.text(f"SELECT EXISTS (SELECT 1 FROM {DEFAULT_PARTITION} WHERE logged_on = :day)")  # noqa: S608
    return connection.execute(query, {"day": day}).scalar_one()


def _make(connection: sa.Connection, day: date) -> None:
    """Create a table and attach it; unlike PARTITION OF, this does not block reads and writes of the log."""
    name, log = _name(day), tables.predictions.name
    connection.execute(sa.text(f"CREATE TABLE {name} (LIKE {log} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"))
    bounds = f"FROM ('{day}') TO ('{day + timedelta(days=1)}')"
    connection.execute(sa.text(f"ALTER TABLE {log} ATTACH PARTITION {name} FOR VALUES {bounds}"))


def _name(day: date) -> str:
    return day.strftime(_NAMES)
