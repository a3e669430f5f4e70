"""`lifelong heads workers` and `lifelong monitors`: the running processes and their state."""

from typing import Any

from lifelong.commands.operation_command import operation_command
from lifelong_core.configuration.monitor_settings import settings_digest
from lifelong_core.operations.administration.processes import (
    DEFAULT_HEAD,
    ListMonitors,
    ListWorkers,
    MonitorAnswer,
    WorkerAnswer,
)
from lifelong_core.store import Tick


def place_name(environment: str | None) -> str:
    """Name of the place where a head is active, for messages; None or `*`: that of the default head."""
    return "(default head)" if environment in (None, DEFAULT_HEAD) else environment


def _worker_row(worker: WorkerAnswer, revision: int) -> dict[str, Any]:
    return {
        "host": worker.host,
        "process": worker.process,
        "state": _worker_state(worker, revision),
        "seen_at": worker.seen_at,
        "started_at": worker.started_at,
        "revision": worker.revision,
        "heads": ", ".join(
            f"{model} {place_name(environment)}: {version}"
            for model, versions in worker.heads.items()
            for environment, version in versions.items()
        ),
        "models": ", ".join(
            f"{model}: {load.provider or f'failed: {load.failure}'}" for model, load in worker.models.items()
        ),
    }


def _worker_state(worker: WorkerAnswer, revision: int) -> str:
    if worker.lost:
        return "lost"
    if any(load.failure is not None for load in worker.models.values()):
        return "model failed"
    return "up to date" if worker.revision == revision else "behind"


workers = operation_command(
    ListWorkers,
    "workers",
    help_text="""List the serving processes of all machines, their heads and their models.

    The state is `up to date`, `behind`, `lost`, or `model failed`: a model could not be loaded.
    """,
    rows=lambda answer: [_worker_row(worker, answer.revision) for worker in answer.workers],
    empty="No worker has been heard of within a day: `lifelong serve`.",
    below="models",
)


def _monitor_row(monitor: MonitorAnswer) -> dict[str, Any]:
    own = [f"{environment}: {mode}" for environment, mode in sorted(monitor.environment_modes.items())]
    return {
        "host": monitor.host,
        "process": monitor.process,
        "state": "lost" if monitor.lost else _monitor_state(monitor.tick),
        "seen_at": monitor.seen_at,
        "mode": ", ".join([monitor.mode, *own]),
        "settings": None if monitor.settings is None else settings_digest(monitor.settings),
        "interval": f"{monitor.interval_seconds:g} s",
        "populations": len(monitor.populations),
    }


def _monitor_state(tick: Tick | None) -> str:
    if tick is None:
        return "starting"
    if tick.finished_at is None:
        return "in a tick"
    return "waiting" if tick.problem is None else "failing"


monitors = operation_command(
    ListMonitors,
    "monitors",
    help_text="""List the monitors of all machines and their last ticks; `lifelong doctor` says what is wrong.

    Monitors with the same settings show the same digest under "settings". All monitors need the same settings.
    """,
    rows=lambda answer: [_monitor_row(monitor) for monitor in answer.monitors],
    empty="No monitor runs, nor was one lost within a day: `lifelong monitor`.",
)
