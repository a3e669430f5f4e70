"""The common clock of all processes on a database, and the calendar."""

from datetime import UTC, date, datetime, time, timedelta

import sqlalchemy as sa


def now() -> datetime:
    """The present time in UTC."""
    return datetime.now(UTC)


def database_time(connection: sa.Connection) -> datetime:
    """Return the present time: of the server on PostgreSQL, of the machine on SQLite."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return now()


def days_before(day: date, count: int) -> date:
    """Return the day `count` days earlier, at least the first day of the calendar."""
    return day - timedelta(days=min(count, (day - date.min).days))


def midnight(day: date) -> datetime:
    """Return the beginning of a day in UTC."""
    return datetime.combine(day, time(), UTC)
