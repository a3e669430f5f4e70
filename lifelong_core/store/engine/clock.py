"""The one clock that all processes on a database share, and the calendar."""

from datetime import UTC, date, datetime, timedelta

import sqlalchemy as sa


def now() -> datetime:
    """The present time in UTC."""
    return datetime.now(UTC)


def database_time(connection: sa.Connection) -> datetime:
    """The present time: the server's on PostgreSQL; on SQLite that of the one machine that there is."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return now()


def days_before(day: date, count: int) -> date:
    """So many days earlier; the first day of the calendar where it has none so early."""
    return day - timedelta(days=min(count, (day - date.min).days))
