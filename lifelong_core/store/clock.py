"""The one clock that all processes on a database share."""

from datetime import datetime

import sqlalchemy as sa

from lifelong_core.store.rows import now


def database_time(connection: sa.Connection) -> datetime:
    """The present time: the server's on PostgreSQL; on SQLite that of the one machine that there is."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return now()
