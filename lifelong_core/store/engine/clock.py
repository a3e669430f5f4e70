"""The one clock that all processes on a database share, and the calendar."""

from datetime import date, datetime, timedelta

import sqlalchemy as sa

from lifelong_core.store.rows import now


def database_time(connection: sa.Connection) -> datetime:
    """The present time: the server's on PostgreSQL; on SQLite that of the one machine that there is."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return now()


def days_before(day: date, count: int) -> date:
    """So many days earlier; the first day of the calendar where it has none so early."""
    return day - timedelta(days=min(count, (day - date.min).days))
