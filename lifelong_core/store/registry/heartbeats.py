"""Heartbeats of the serving workers and of the monitors: one row for each process."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, cast

import sqlalchemy as sa

from lifelong_core.configuration.monitor_settings import describe_differences
from lifelong_core.configuration.policy_fields import Mode
from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.entities.heads import HeadPopulation
from lifelong_core.entities.registry import ModelLoad, ServingWorker
from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.engine.statements import Repository, upsert_into
from lifelong_core.store.schema import tables

LOST_AFTER = timedelta(minutes=1)
"""A process without a heartbeat for this time counts as dead."""
FORGOTTEN_AFTER = timedelta(days=1)
"""After this time its row is deleted."""

_TIMES = "visited_at", "watched_at"
"""fields of a visit that are text in its document"""
_STRICTEST_FIRST: tuple[str, ...] = ("shadow", "propose", "auto")


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
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """its settings, from `monitor_settings`"""

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


class _Heartbeats(Repository):
    """The rows of the processes of one kind."""

    _table: sa.Table

    def forget(self, process_id: str) -> None:
        """Delete the heartbeat of a process that stops; harmless to repeat."""
        with self._database.write() as connection:
            connection.execute(sa.delete(self._table).where(self._table.c.id == process_id))

    def _record(self, process_id: str, values: Mapping[str, Any]) -> None:
        """Replace the row of a process, and delete the rows of forgotten ones."""
        with self._database.write() as connection:
            seen_at = database_time(connection)
            changed = {**values, "seen_at": seen_at}
            statement = upsert_into(connection, self._table).values(id=process_id, **changed)
            connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=changed))
            is_old = self._table.c.seen_at < seen_at - FORGOTTEN_AFTER
            connection.execute(sa.delete(self._table).where(is_old))

    def _recent(self, *columns: sa.Column[Any]) -> list[tuple[Row, bool]]:
        """All rows, newest heartbeat first, and whether each process counts as dead."""
        query = sa.select(*columns).order_by(self._table.c.seen_at.desc(), self._table.c.id)
        with self._database.read() as connection:
            lost_before = database_time(connection) - LOST_AFTER
            return [(row, row.seen_at < lost_before) for row in connection.execute(query)]


class Workers(_Heartbeats):
    """Records heartbeats of workers and lists workers."""

    _table = tables.workers

    def record_heartbeat(
        self,
        worker_id: str,
        *,
        host: str,
        process: int,
        started_at: datetime,
        revision: int,
        heads: Mapping[HeadPopulation, int],
        models: Mapping[int, ModelLoad],
    ) -> None:
        """Record a heartbeat of a worker, with the heads and models that it serves.

        Args:
            worker_id: UUID, new at each start of the worker.
            host: name of its machine.
            process: its process id.
            started_at: time of its start.
            revision: of its registry.
            heads: version of each head that it applies, by model id and environment (None: the default head).
            models: results of loading graphs, by model id.

        Raises:
            UnavailableError: the database does not answer.
        """
        values = {
            "host": host[:255],
            "process": process,
            "started_at": started_at,
            "revision": revision,
            "heads": [
                {"model_id": model_id, "environment": environment, "version": version}
                for (model_id, environment), version in heads.items()
            ],
            "models": [
                {"model_id": model_id, "provider": load.provider, "failure": load.failure}
                for model_id, load in models.items()
            ],
        }
        self._record(worker_id, values)

    def list(self) -> list[ServingWorker]:
        """All workers with a heartbeat within the last day, newest heartbeat first."""
        return [_worker_of(row, is_lost=is_lost) for row, is_lost in self._recent(*self._table.c)]


class Monitors(_Heartbeats):
    """Records heartbeats of monitors and lists monitors."""

    _table = tables.monitors

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
            "settings": dict(heartbeat.settings),
            "tick_due_at": tick and tick.due_at,
            "tick_started_at": tick and tick.started_at,
            "tick_finished_at": tick and tick.finished_at,
            "tick_problem": tick and tick.problem,
            "visits": [_visit_document(visit) for visit in heartbeat.visits],
        }
        self._record(heartbeat.id, values)

    def list(self, *, visits: bool = True) -> list[MonitorProcess]:
        """All monitors with a heartbeat within the last day, newest heartbeat first.

        Args:
            visits: False leaves out the visits, which are slow to read for many populations.

        Raises:
            UnavailableError: the database does not answer.
        """
        columns = [column for column in self._table.c if visits or column.name != "visits"]
        return [
            MonitorProcess(_heartbeat_of(row), row.seen_at, is_lost=is_lost)
            for row, is_lost in self._recent(*columns)
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
        (monitor.heartbeat for monitor in monitors if not monitor.is_lost),
        key=lambda heartbeat: (heartbeat.started_at, heartbeat.id),
    )
    first, rest = living[:1], living[1:]
    sentences: list[str] = []
    for monitor in first:
        for other in rest:
            differing = describe_differences(monitor.settings, other.settings)
            if differing:
                sentences.append(
                    f"{monitor.name} and {other.name} watch with different settings: {', '.join(differing)}."
                )
    return sentences


def _worker_of(row: Row, *, is_lost: bool) -> ServingWorker:
    heads = {(head["model_id"], head["environment"]): head["version"] for head in row.heads}
    models = {load["model_id"]: ModelLoad(load["provider"], load["failure"]) for load in row.models}
    return read_record(
        row, ServingWorker, heads=MappingProxyType(heads), models=MappingProxyType(models), is_lost=is_lost
    )


def _heartbeat_of(row: Row) -> Heartbeat:
    tick = None
    if row.tick_started_at is not None:
        tick = Tick(row.tick_due_at, row.tick_started_at, row.tick_finished_at, row.tick_problem)
    visits = tuple(map(_visit_of, row._mapping.get("visits", ())))
    return read_record(row, Heartbeat, tick=tick, visits=visits)


def _visit_document(visit: Visit) -> dict[str, Any]:
    times = {name: getattr(visit, name) for name in _TIMES}
    return asdict(visit) | {name: time and time.isoformat() for name, time in times.items()}


def _visit_of(document: Mapping[str, Any]) -> Visit:
    times: dict[str, Any] = {
        name: document[name] and datetime.fromisoformat(document[name]) for name in _TIMES
    }
    return Visit(**{**document, **times})
