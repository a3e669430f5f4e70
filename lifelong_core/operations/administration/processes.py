"""The processes of an installation: serving workers and monitors, of all machines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.entities.registry import ModelLoad, ServingWorker
from lifelong_core.operations.operation import Call, Context, operation
from lifelong_core.store.registry.heartbeats import MonitorProcess, Tick

DEFAULT_HEAD = "*"
"""Name of the model's default head beside those of environments."""


@dataclass(frozen=True, kw_only=True)
class WorkerAnswer(Entity):
    """A serving process at its latest heartbeat."""

    worker: str
    host: str
    process: int
    started_at: Moment
    seen_at: Moment
    lost: bool
    revision: int
    """of the registry that it serves"""
    heads: dict[str, dict[str, int]]
    """version of each head that it applies: model -> environment -> version, where `*` is the default head"""
    models: dict[str, ModelLoad]


@dataclass(frozen=True, kw_only=True)
class WorkerList(Entity):
    """The serving processes of all machines."""

    revision: int
    """the present revision of the registry"""
    workers: list[WorkerAnswer]


@dataclass(frozen=True, kw_only=True)
class VisitAnswer(Entity):
    """The latest visit to a population."""

    model: str
    environment: str
    visited_at: Moment
    outcome: str
    reason: str
    watched_at: Moment | None
    """latest cycle, or latest visit without new predictions"""


@dataclass(frozen=True, kw_only=True)
class MonitorAnswer(Entity):
    """A monitor, its latest tick, and its latest visit to each population."""

    monitor: str
    host: str
    process: int
    started_at: Moment
    seen_at: Moment
    lost: bool
    interval_seconds: float
    mode: str
    environment_modes: dict[str, str]
    settings: dict[str, Any] | None
    """what decides what the monitor does, by name; null: unknown"""
    tick: Tick | None
    populations: list[VisitAnswer]


@dataclass(frozen=True, kw_only=True)
class MonitorList(Entity):
    """The monitors of all machines, newest heartbeat first."""

    monitors: list[MonitorAnswer]


class ListWorkers(Call[WorkerList]):
    """Nothing is chosen."""


class ListMonitors(Call[MonitorList]):
    """Nothing is chosen."""


@operation("GET", "/v1/admin/workers", scope=Scope.READ, example=ListWorkers())
def list_workers(context: Context, call: ListWorkers) -> WorkerList:  # noqa: ARG001
    """The serving processes of all machines, latest heartbeat first, each with its heads.

    `revision` is the present revision of the registry: a worker with the same revision has loaded every change.
    """
    references = _references(context)
    workers = [_worker_answer(worker, references) for worker in context.store.workers.list()]
    return WorkerList(revision=context.store.revision(), workers=workers)


@operation("GET", "/v1/admin/monitors", scope=Scope.READ, example=ListMonitors())
def list_monitors(context: Context, call: ListMonitors) -> MonitorList:  # noqa: ARG001
    """The monitors of all machines with a heartbeat in the last day, newest first.

    `watched_at` of a population is its latest cycle, or its latest visit without new predictions.
    """
    references = _references(context)
    return MonitorList(
        monitors=[_monitor_answer(monitor, references) for monitor in context.store.monitors.list()]
    )


def _references(context: Context) -> dict[int, str]:
    return {model.id: model.reference for model in context.store.models.list()}


def _worker_answer(worker: ServingWorker, references: Mapping[int, str]) -> WorkerAnswer:
    heads: dict[str, dict[str, int]] = {}
    for (model_id, environment), version in worker.heads.items():
        if model_id in references:
            heads.setdefault(references[model_id], {})[environment or DEFAULT_HEAD] = version
    return WorkerAnswer.of(
        worker,
        worker=worker.id,
        lost=worker.is_lost,
        heads=heads,
        models={
            references[model_id]: load for model_id, load in worker.models.items() if model_id in references
        },
    )


def _monitor_answer(monitor: MonitorProcess, references: Mapping[int, str]) -> MonitorAnswer:
    heartbeat = monitor.heartbeat
    return MonitorAnswer.of(
        heartbeat,
        monitor=heartbeat.id,
        seen_at=monitor.seen_at,
        lost=monitor.is_lost,
        environment_modes=dict(heartbeat.environment_modes),
        settings=dict(heartbeat.settings),
        populations=[
            VisitAnswer.of(visit, model=references[visit.model_id])
            for visit in heartbeat.visits
            if visit.model_id in references
        ],
    )
