"""Checks of the monitors: their heartbeats, and when each population was watched last."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from lifelong_core.configuration.monitor_settings import describe_differences, monitor_settings
from lifelong_core.doctor.findings import Finding, Installation, failure, ok, warning
from lifelong_core.store import Heartbeat, MonitorProcess, Visit
from lifelong_core.store.registry.heartbeats import describe_disagreements
from lifelong_core.store.registry.sick_processes import LEAST_PATIENCE, watch_patience

_LONGEST_TICK = timedelta(minutes=10)
_MOST = 5
"""Of several populations so many are named."""


def check_monitor(installation: Installation) -> Iterator[Finding]:
    """A monitor runs, its ticks start and end, and every population with predictions is watched."""
    monitors = installation.store.monitors.list()
    living = [one for one in monitors if not one.is_lost]
    patience = watch_patience(living, installation.settings.cycle_interval_seconds)
    populations = installation.store.predictions.populations(
        installation.now - installation.settings.window_age
    )
    yield from _abandoned(installation, patience, populations)
    yield from _disagreements(installation, living)
    yield from _lost(monitors, living)
    if not living:
        yield _none_runs(installation, len(populations))
    for one in living:
        yield from _ticks(one.heartbeat, installation.now)
    unwatched = list(_unwatched(installation, monitors, living, populations, patience))
    yield from unwatched[:_MOST]
    if len(unwatched) > _MOST:
        yield warning(f"{len(unwatched) - _MOST} more populations are not watched.", "lifelong doctor --json")
    yield ok(_summary(installation, living, len(populations)))


def _abandoned(
    installation: Installation, patience: timedelta, populations: Sequence[tuple[int, str]]
) -> Iterator[Finding]:
    """Find leases of monitors that died during a cycle; a population without predictions needs none."""
    idle = {
        f"cycle/{model.id}/{environment}"
        for model in installation.store.models.list()
        for environment in installation.store.environments.list()
        if (model.id, environment) not in populations
    }
    for lease in installation.store.health.leases():
        if lease.name not in idle and lease.is_over and installation.now - lease.expires_at > patience:
            yield warning(
                f"{lease.holder} died while it held {lease.name}, and no monitor has taken it over since"
                f" {lease.expires_at:%Y-%m-%d %H:%M} UTC.",
                "Start a monitor: `lifelong monitor`.",
            )


def _disagreements(installation: Installation, living: Sequence[MonitorProcess]) -> Iterator[Finding]:
    """Find monitors whose settings differ from each other or from this host's."""
    for sentence in describe_disagreements(living):
        yield failure(
            f"{sentence} The strictest mode of them holds; of all else, the monitor that runs a cycle decides.",
            "Give all hosts the same settings and start the monitors again (`lifelong monitors`).",
        )
    here = monitor_settings(installation.settings)
    for one in living:
        if differing := describe_differences(here, one.heartbeat.settings):
            yield warning(
                f"{one.heartbeat.name} watches with other settings than this host has: {', '.join(differing)}"
                " (here, there).",
                "Give all hosts the same settings; a monitor reads them when it starts.",
            )


def _lost(monitors: Sequence[MonitorProcess], living: Sequence[MonitorProcess]) -> Iterator[Finding]:
    for one in monitors:
        is_replaced = any(other.heartbeat.started_at > one.seen_at for other in living)
        if one.is_lost and not is_replaced:
            yield warning(
                f"{one.heartbeat.name} was seen last at {one.seen_at:%Y-%m-%d %H:%M:%S} UTC.",
                "It was killed, or it hangs: look at its log and start it again (`lifelong monitor`).",
            )


def _none_runs(installation: Installation, populations: int) -> Finding:
    newest = next(iter(installation.store.cycles.list(limit=1)), None)
    last = (
        "no cycle has ever run" if newest is None else f"the last cycle ended at {_time(newest.finished_at)}"
    )
    if populations == 0:
        concerned = "there are no recent predictions to watch"
    else:
        concerned = (
            f"{_count(populations)} with recent predictions {'is' if populations == 1 else 'are'} not watched"
        )
    return warning(f"no monitor is running: {concerned}; {last}.", "Start one: `lifelong monitor`.")


def _ticks(heartbeat: Heartbeat, now: datetime) -> Iterator[Finding]:
    tick, name = heartbeat.tick, heartbeat.name
    patience = watch_patience((), heartbeat.interval_seconds)
    if tick is None:
        if now - heartbeat.started_at > LEAST_PATIENCE:
            yield warning(f"{name} has not begun to watch.", "Look at its log.")
    elif tick.finished_at is None:
        if now - tick.started_at > _LONGEST_TICK:
            yield warning(
                f"{name} has been in the same tick since {_time(tick.started_at)}.",
                "If its log shows no progress it hangs: end it and start it again.",
            )
    elif tick.problem is not None:
        yield warning(f"the last tick of {name} failed as a whole: {tick.problem}", "Look at its log.")
    elif now - tick.finished_at > patience:
        yield warning(
            f"{name} has made no tick since {_time(tick.finished_at)}; its interval is"
            f" {heartbeat.interval_seconds:g} s.",
            "Look at its log, end it and start it again.",
        )


def _unwatched(
    installation: Installation,
    monitors: Sequence[MonitorProcess],
    living: Sequence[MonitorProcess],
    populations: Sequence[tuple[int, str]],
    patience: timedelta,
) -> Iterator[Finding]:
    """Populations that a living monitor visits without success, or that were watched once and are not any more.

    One that no monitor has visited yet is new: its turn comes with the next tick.
    """
    if not living:
        return
    models = {model.id: model.reference for model in installation.store.models.list()}
    for model_id, environment in populations:
        place = f"{models[model_id]} in {environment}"
        visits = [_visit(one, model_id, environment) for one in living]
        newest = max((visit for visit in visits if visit), key=lambda visit: visit.visited_at, default=None)
        watched_at = _watched_at(installation, monitors, model_id, environment)
        said = "" if newest is None else f" (last visit: {newest.outcome}, {newest.reason.rstrip('.')})"
        if newest is not None and newest.outcome == "error":
            yield warning(f"{place}: the last visit failed: {newest.reason}", "The monitor's log says more.")
        elif watched_at is None:
            if newest is not None:
                yield warning(f"{place} has never been watched{said}.", "Has the model a calibration set?")
        elif installation.now - watched_at > patience:
            yield warning(
                f"{place} has not been watched since {_time(watched_at)}{said}.", "Look at the monitor's log."
            )


def _watched_at(
    installation: Installation, monitors: Sequence[MonitorProcess], model_id: int, environment: str
) -> datetime | None:
    """Time of the last cycle, or of the last visit without news."""
    visits = [_visit(one, model_id, environment) for one in monitors]
    last = installation.store.cycles.last(model_id, environment)
    times = [visit.watched_at for visit in visits if visit is not None and visit.watched_at is not None]
    return max([*times, *([] if last is None else [last.finished_at])], default=None)


def _visit(one: MonitorProcess, model_id: int, environment: str) -> Visit | None:
    return next(
        (
            visit
            for visit in one.heartbeat.visits
            if (visit.model_id, visit.environment) == (model_id, environment)
        ),
        None,
    )


def _summary(installation: Installation, living: Sequence[MonitorProcess], populations: int) -> str:
    """The running monitors and their state, in words."""
    running = ", ".join(
        f"{one.heartbeat.name} (mode {_modes(one.heartbeat)}, every {one.heartbeat.interval_seconds:g} s)"
        for one in living
    )
    watched = f"{_count(populations)} watched" if populations else "no recent predictions to watch"
    held = [
        f"{lease.name} by {lease.holder}" for lease in installation.store.health.leases() if not lease.is_over
    ]
    return f"{running}; {watched}{'; now ' + ', '.join(held) if held else ''}."


def _modes(heartbeat: Heartbeat) -> str:
    own = [f"{environment}: {mode}" for environment, mode in sorted(heartbeat.environment_modes.items())]
    return ", ".join([heartbeat.mode, *own])


def _count(populations: int) -> str:
    return "1 population" if populations == 1 else f"{populations} populations"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
