"""Heartbeats of the monitors, with their newest visit of each population."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import sqlalchemy as sa

from lifelong_core.configuration.monitor_settings import describe_differences
from lifelong_core.configuration.policy_fields import Mode
from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.repository import Repository
from lifelong_core.store.engine.statements import upsert_into
from lifelong_core.store.schema import tables

LOST_AFTER = timedelta(minutes=1)
"""A monitor without a heartbeat for this time counts as dead."""
FORGOTTEN_AFTER = timedelta(days=1)
"""After this time its row is deleted."""

_STRICTEST_FIRST: tuple[str, ...] = ("shadow", "propose", "auto")

_monitors = tables.monitors


@dataclass(frozen=True)
class Tick(Entity):
    """The newest tick of a monitor, by its own clock."""

    due_at: Moment
    started_at: Moment
    finished_at: Moment | None
    """None: it has not ended"""
    problem: str | None = None
    """error of the tick as a whole; None: it did not fail"""


@dataclass(frozen=True)
class Visit:
    """The newest visit of a monitor to a population."""

    model_id: int
    environment: str
    visited_at: datetime
    outcome: str
    """keep, swap, refuse, skip (no cycle was recorded) or error"""
    reason: str
    watched_at: datetime | None
    """time of the latest visit that ran a cycle or had nothing new; None: never"""


@dataclass(frozen=True)
class Heartbeat:
    """The state that a monitor process reports."""

    id: str
    """UUID, new at each start of the process"""
    host: str
    process: int
    started_at: datetime
    interval_seconds: float
    """between two ticks"""
    mode: str
    """of the common policy: auto, propose or shadow"""
    environment_modes: Mapping[str, str]
    """modes of the environments that differ from `mode`"""
    tick: Tick | None
    """None: before the first one"""
    visits: tuple[Visit, ...]
    """one for each population"""
    settings: Mapping[str, Any] | None = None
    """its settings, from `monitor_settings`; None: unknown, an older version"""

    @property
    def name(self) -> str:
        """Process and host, for messages."""
        return f"monitor {self.process} on {self.host}"

    def mode_in(self, environment: str) -> str:
        """Mode of the monitor in an environment."""
        return self.environment_modes.get(environment, self.mode)


@dataclass(frozen=True)
class MonitorProcess:
    """The state of a monitor at its latest heartbeat."""

    heartbeat: Heartbeat
    seen_at: datetime
    """time of the database"""
    is_lost: bool
    """whether the last heartbeat is older than LOST_AFTER"""


class Monitors(Repository):
    """Records heartbeats of monitors and lists monitors."""

    def record_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Record a heartbeat; it replaces the previous one of the process.

        Raises:
            UnavailableError: the database does not answer.
        """
        tick = heartbeat.tick
        values: dict[str, Any] = {
            "host": heartbeat.host[:255],
            "process": heartbeat.process,
            "started_at": heartbeat.started_at,
            "interval_seconds": heartbeat.interval_seconds,
            "mode": heartbeat.mode,
            "environment_modes": dict(heartbeat.environment_modes),
            "settings": None if heartbeat.settings is None else dict(heartbeat.settings),
            "tick_due_at": tick and tick.due_at,
            "tick_started_at": tick and tick.started_at,
            "tick_finished_at": tick and tick.finished_at,
            "tick_problem": tick and tick.problem,
            "visits": [_visit_document(visit) for visit in heartbeat.visits],
        }
        with self._database.write() as connection:
            values["seen_at"] = seen_at = database_time(connection)
            statement = upsert_into(connection, _monitors).values(id=heartbeat.id, **values)
            connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=values))
            connection.execute(sa.delete(_monitors).where(_monitors.c.seen_at < seen_at - FORGOTTEN_AFTER))

    def list(self, *, visits: bool = True) -> list[MonitorProcess]:
        """All monitors with a heartbeat within the last day, newest heartbeat first.

        Args:
            visits: False leaves out the visits, which are slow to read for many populations.

        Raises:
            UnavailableError: the database does not answer.
        """
        columns = [column for column in _monitors.c if visits or column is not _monitors.c.visits]
        query = sa.select(*columns).order_by(_monitors.c.seen_at.desc(), _monitors.c.id)
        with self._database.read() as connection:
            present = database_time(connection)
            return [
                MonitorProcess(_heartbeat_of(row), row.seen_at, is_lost=present - row.seen_at > LOST_AFTER)
                for row in connection.execute(query)
            ]

    def strictest_mode(self, environment: str, own: Mode) -> Mode:
        """The effective mode of an environment: the most restrictive mode of the living monitors.

        Args:
            environment: name of the environment.
            own: the mode of the calling monitor.

        Raises:
            UnavailableError: the database does not answer.
        """
        return strictest_mode(self.list(visits=False), environment, own)

    def forget(self, monitor_id: str) -> None:
        """Delete the heartbeat of a monitor that stops; harmless to repeat."""
        with self._database.write() as connection:
            connection.execute(sa.delete(_monitors).where(_monitors.c.id == monitor_id))


def strictest_mode(monitors: Sequence[MonitorProcess], environment: str, own: Mode) -> Mode:
    """`Monitors.strictest_mode` of these monitors."""
    stated = [one.heartbeat.mode_in(environment) for one in monitors if not one.is_lost]
    known = [mode for mode in stated if mode in _STRICTEST_FIRST]  # a newer version may have other modes
    strictest = min((own, *known), key=_STRICTEST_FIRST.index)
    return cast("Mode", strictest)


def describe_disagreements(monitors: Sequence[MonitorProcess]) -> list[str]:
    """Sentences on differences between the settings of living monitors; empty if all agree.

    Args:
        monitors: of `Monitors.list`.
    """
    living = sorted(
        (one.heartbeat for one in monitors if not one.is_lost and one.heartbeat.settings is not None),
        key=lambda heartbeat: (heartbeat.started_at, heartbeat.id),
    )
    first, rest = living[:1], living[1:]
    sentences: list[str] = []
    for one in first:
        for other in rest:
            differing = describe_differences(one.settings or {}, other.settings or {})
            if differing:
                sentences.append(
                    f"{one.name} and {other.name} watch with different settings: {', '.join(differing)}."
                )
    return sentences


def _heartbeat_of(row: Row) -> Heartbeat:
    tick = None
    if row.tick_started_at is not None:
        tick = Tick(row.tick_due_at, row.tick_started_at, row.tick_finished_at, row.tick_problem)
    return Heartbeat(
        id=row.id,
        host=row.host,
        process=row.process,
        started_at=row.started_at,
        interval_seconds=row.interval_seconds,
        mode=row.mode,
        environment_modes=dict(row.environment_modes),
        tick=tick,
        visits=tuple(_visit_of(document) for document in row._mapping.get("visits", ())),
        settings=row.settings,
    )


def _visit_document(visit: Visit) -> dict[str, Any]:
    document = asdict(visit)
    document["visited_at"] = visit.visited_at.isoformat()
    document["watched_at"] = visit.watched_at and visit.watched_at.isoformat()
    return document


def _visit_of(document: Mapping[str, Any]) -> Visit:
    watched_at = document["watched_at"]
    return Visit(
        model_id=document["model_id"],
        environment=document["environment"],
        visited_at=datetime.fromisoformat(document["visited_at"]),
        outcome=document["outcome"],
        reason=document["reason"],
        watched_at=None if watched_at is None else datetime.fromisoformat(watched_at),
    )
