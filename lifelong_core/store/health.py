"""What the database can say about its own state; `lifelong doctor` asks."""

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
    """A lease that was not given back."""

    name: str
    holder: str
    expires_at: datetime
    is_over: bool
    """its holder has given no sign of life since"""


@dataclass(frozen=True)
class SummaryState:
    """How far the summaries of one population are."""

    unread: int
    """predictions that no summary holds yet"""
    oldest_unread: datetime | None
    """when the first of them was made"""
    stale: int
    """hours that have to be made anew"""
    quarantined: int
    """predictions that no estimate may use"""


class Health:
    """Looks, and changes nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def schema(self) -> str:
        """The revision of the schema."""
        with self._database.read() as connection:
            return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one()

    def damage(self) -> list[str]:
        """What SQLite finds wrong in its file; it reads the whole file. PostgreSQL checks itself while it works."""
        if self._database.is_postgresql:
            return []
        with self._database.read() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(20)").scalars().all()
        return [line for line in found if line != "ok"]

    def unsafe_settings(self) -> list[str]:
        """Settings of the PostgreSQL server with which a power failure costs more than the last moment."""
        if not self._database.is_postgresql:
            return []
        query = sa.text(
            "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"
            " ORDER BY name"
        )
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def days_without_partition(self, first: date, days: int) -> list[date]:
        """Of so many days from the first one on those that have no partition; none on SQLite."""
        if not self._database.is_postgresql:
            return []
        with self._database.read() as connection:
            return missing_days(connection, [first + timedelta(days=ahead) for ahead in range(days)])

    def days_in_default_partition(self) -> list[date]:
        """The days of which predictions went to the default partition; none on SQLite."""
        if not self._database.is_postgresql:
            return []
        # One look into the index for each day, where DISTINCT would read the whole partition.
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
        """The leases that somebody holds, or died with."""
        query = sa.select(_leases).order_by(_leases.c.name)
        with self._database.read() as connection:
            present = database_time(connection)
            return [
                LeaseState(row.name, row.holder, row.expires_at, row.expires_at <= present)
                for row in connection.execute(query)
                # Given back is long ago, by any clock.
                if row.expires_at.year > 1970
            ]

    def summaries(self, model_id: int, environment: str, digest: str) -> SummaryState | None:
        """How far the summaries of a population are that a quantifier made; None: nobody has begun."""
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
