"""Queries on the state of the database, for `lifelong doctor`."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.clock import database_time, now
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.log.commit_order import read_log_position, rows_of
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.store.log.partitions import DEFAULT_PARTITION, missing_days
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries.rows import SummaryKey, read_cursor

_log, _leases, _summaries = tables.predictions, tables.leases, tables.window_summaries
_CLOCK_TOLERANCE = timedelta(minutes=1)
"""Clocks that differ by less are set well enough: windows and summaries count in hours."""

CLOCK_HINT = (
    "Set the clocks of all hosts by NTP: windows, cool-down, retention and the hours of summaries go by them."
)


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


class Health(Repository):
    """Reads the state of the database without changes."""

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

    def clock_faults(self) -> list[str]:
        """Sentences on a clock of this machine that differs from that of the server, or from those of other writers.

        A clock that is ahead shows on PostgreSQL only: with SQLite, nothing else tells the time.
        """
        audit = tables.audit
        newest = {
            "The newest prediction": sa.select(_log.c.id).order_by(_log.c.logged_on.desc(), _log.c.id.desc()),
            "The newest audit entry": sa.select(audit.c.at).order_by(audit.c.id.desc()),
            "The newest heartbeat of a worker": sa.select(sa.func.max(tables.workers.c.seen_at)),
            "The newest heartbeat of a monitor": sa.select(sa.func.max(tables.monitors.c.seen_at)),
        }
        with self._database.read() as connection:
            times = {what: connection.scalar(query.limit(1)) for what, query in newest.items()}
            ahead = now() - database_time(connection)
        present = now()
        sentences: list[str] = []
        if abs(ahead) > _CLOCK_TOLERANCE:
            side = "ahead of" if ahead > timedelta() else "behind"
            sentences.append(
                f"The clock of this machine is {_span(ahead)} {side} that of the database server."
            )
        for what, value in times.items():
            at = logged_at(value) if isinstance(value, UUID) else value
            if at is not None and at - present > _CLOCK_TOLERANCE:
                sentences.append(
                    f"{what} is dated {_span(at - present)} after the present time: the clock of this machine is"
                    " behind, or that of the writer was ahead."
                )
        return sentences

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


def _span(duration: timedelta) -> str:
    return f"{abs(duration) / timedelta(minutes=1):,.0f} min"
