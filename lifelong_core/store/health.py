"""Queries on the state of the database, for `lifelong doctor`."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

import sqlalchemy as sa

from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.database import Database
from lifelong_core.store.log.commit_order import read_log_position, rows_of
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.store.log.partitions import DEFAULT_PARTITION, missing_days
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.rows import SummaryKey, read_cursor

_log, _leases, _summaries = tables.predictions, tables.leases, tables.window_summaries


@dataclass(frozen=True)
class LeaseState:
    """A lease that was not released."""

    name: str
    holder: str
    expires_at: datetime
    is_over: bool
    """whether its holder has not renewed it in time"""


@dataclass(frozen=True)
class SummaryState:
    """Progress of the summaries of one population."""

    unread: int
    """number of predictions that are not summarised yet"""
    oldest_unread: datetime | None
    """time of the first of them"""
    stale: int
    """number of stale hours"""
    quarantined: int
    """number of unusable predictions"""


class Health:
    """Reads the state of the database without changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def schema(self) -> str:
        """The revision of the schema."""
        with self._database.read() as connection:
            return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one()

    def damage(self) -> list[str]:
        """Damage that SQLite finds in its file; it reads the whole file. PostgreSQL checks itself during operation."""
        if self._database.is_postgresql:
            return []
        with self._database.read() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(20)").scalars().all()
        return [line for line in found if line != "ok"]

    def unsafe_settings(self) -> list[str]:
        """Settings of the PostgreSQL server with which a power failure can lose or damage committed data."""
        if not self._database.is_postgresql:
            return []
        query = sa.text(
            "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"
            " ORDER BY name"
        )
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def days_without_partition(self, first: date, days: int) -> list[date]:
        """The days without a partition, of `days` days from `first` on; none on SQLite."""
        if not self._database.is_postgresql:
            return []
        with self._database.read() as connection:
            return missing_days(connection, [first + timedelta(days=ahead) for ahead in range(days)])

    def days_in_default_partition(self) -> list[date]:
        """The days with predictions in the default partition; none on SQLite."""
        if not self._database.is_postgresql:
            return []
        # One index lookup for each day; DISTINCT would read the whole partition.
        query = sa.text(
            "WITH RECURSIVE days AS ("  # noqa: S608
            f" SELECT min(logged_on) AS day FROM {DEFAULT_PARTITION}"
            f" UNION ALL SELECT (SELECT min(logged_on) FROM {DEFAULT_PARTITION} WHERE logged_on > days.day)"
            " FROM days WHERE days.day IS NOT NULL"
            ") SELECT day FROM days WHERE day IS NOT NULL"
        )
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def leases(self) -> list[LeaseState]:
        """The leases that are held, or whose holder died."""
        query = sa.select(_leases).order_by(_leases.c.name)
        with self._database.read() as connection:
            present = database_time(connection)
            return [
                LeaseState(row.name, row.holder, row.expires_at, row.expires_at <= present)
                for row in connection.execute(query)
                # Released leases end long ago by any clock.
                if row.expires_at.year > 1970
            ]

    def summaries(self, model_id: int, environment: str, digest: str) -> SummaryState | None:
        """Progress of a population's summaries by a quantifier; None: not started."""
        key = SummaryKey(model_id, environment, digest)
        with self._database.read() as connection:
            cursor = read_cursor(connection, key)
            if cursor is None:
                return None
            population = rows_of(model_id, environment)
            unread = sa.select(sa.func.count()).where(
                cursor.unread, _log.c.commit_order < read_log_position(connection), *population
            )
            first = sa.select(_log.c.id).where(cursor.unread, *population).order_by(_log.c.id).limit(1)
            oldest = connection.execute(first).scalar_one_or_none()
            counts = sa.select(
                sa.func.count().filter(_summaries.c.summary.is_(None)),
                sa.func.coalesce(sa.func.sum(_summaries.c.quarantined), 0),
            ).where(*key.match(_summaries))
            stale, quarantined = connection.execute(counts).one()
            return SummaryState(
                unread=connection.execute(unread).scalar_one(),
                oldest_unread=None if oldest is None else logged_at(oldest),
                stale=stale,
                quarantined=quarantined,
            )
