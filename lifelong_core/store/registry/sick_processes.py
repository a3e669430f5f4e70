"""What is wrong with the workers and monitors of an installation, as sentences."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from lifelong_core.entities.registry import ServingWorker
from lifelong_core.store.log.records import Population
from lifelong_core.store.registry.heartbeats import MonitorProcess, describe_disagreements

MISSED_TICKS = 2
LEAST_PATIENCE = timedelta(minutes=1)
"""Ticks may follow each other within seconds; so long nothing counts as late."""


def describe_sick(
    workers: Sequence[ServingWorker],
    monitors: Sequence[MonitorProcess],
    references: Mapping[int, str],
    *,
    at: datetime,
) -> list[str]:
    """Lost processes, graphs that do not load, and monitors that are late, failed or disagree.

    A lost process that a later one has replaced is left out.

    Args:
        workers: of `Workers.list`.
        monitors: of `Monitors.list`.
        references: of the models, by id.
        at: the present time.
    """
    return [*_workers(workers, references), *_monitors(monitors, at), *describe_disagreements(monitors)]


def watch_patience(monitors: Sequence[MonitorProcess], interval_seconds: float) -> timedelta:
    """Without a successful visit for longer, a population counts as not watched.

    Args:
        monitors: of `Monitors.list`; the longest interval of the living ones holds.
        interval_seconds: holds where no monitor lives.
    """
    living = (one.heartbeat.interval_seconds for one in monitors if not one.is_lost)
    return max(MISSED_TICKS * timedelta(seconds=max(living, default=interval_seconds)), LEAST_PATIENCE)


def last_watched(monitors: Sequence[MonitorProcess]) -> dict[Population, datetime | None]:
    """When monitors last visited each population with success; None: they visited it without success."""
    found: dict[Population, datetime | None] = {}
    for visit in (visit for one in monitors for visit in one.heartbeat.visits):
        population = visit.model_id, visit.environment
        times = [time for time in (found.get(population), visit.watched_at) if time is not None]
        found[population] = max(times, default=None)
    return found


def _workers(workers: Sequence[ServingWorker], references: Mapping[int, str]) -> Iterator[str]:
    living = [worker for worker in workers if not worker.is_lost]
    if not living:
        yield "No worker is running; start one: `lifelong serve`."
    for worker in workers:
        name = f"Worker {worker.process} on {worker.host}"
        if worker.is_lost and not any(other.started_at > worker.seen_at for other in living):
            yield f"{name} was seen last at {worker.seen_at:%Y-%m-%d %H:%M} UTC."
        for model_id, load in worker.models.items():
            if not worker.is_lost and load.failure is not None and model_id in references:
                yield f"{name} cannot load {references[model_id]}: {load.failure}"


def _monitors(monitors: Sequence[MonitorProcess], at: datetime) -> Iterator[str]:
    living = [one for one in monitors if not one.is_lost]
    if not living:
        yield "No monitor is running; start one: `lifelong monitor`."
    for one in monitors:
        heartbeat, tick = one.heartbeat, one.heartbeat.tick
        name = f"{heartbeat.name[0].upper()}{heartbeat.name[1:]}"
        patience = watch_patience((), heartbeat.interval_seconds)
        if one.is_lost:
            if not any(other.heartbeat.started_at > one.seen_at for other in living):
                yield f"{name} was seen last at {one.seen_at:%Y-%m-%d %H:%M} UTC."
        elif tick is not None and tick.problem is not None:
            yield f"The last tick of {heartbeat.name} failed: {tick.problem}"
        elif tick is not None and tick.finished_at is not None and at - tick.finished_at > patience:
            yield f"{name} has made no tick since {tick.finished_at:%Y-%m-%d %H:%M} UTC."
