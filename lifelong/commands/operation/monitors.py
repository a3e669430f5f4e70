"""`lifelong monitors`: the running monitors and their state."""

from typing import Any

from lifelong.commands.operation_command import operation_command
from lifelong_core.configuration.monitor_settings import settings_digest
from lifelong_core.operations.processes import ListMonitors, MonitorAnswer
from lifelong_core.store import Tick


def _row(monitor: MonitorAnswer) -> dict[str, Any]:
    own = [f"{environment}: {mode}" for environment, mode in sorted(monitor.environment_modes.items())]
    return {
        "host": monitor.host,
        "process": monitor.process,
        "state": "lost" if monitor.lost else _state(monitor.tick),
        "seen_at": monitor.seen_at,
        "mode": ", ".join([monitor.mode, *own]),
        "settings": None if monitor.settings is None else settings_digest(monitor.settings),
        "interval": f"{monitor.interval_seconds:g} s",
        "populations": len(monitor.populations),
    }


def _state(tick: Tick | None) -> str:
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
    rows=lambda answer: [_row(monitor) for monitor in answer.monitors],
    empty="No monitor runs, nor was one lost within a day: `lifelong monitor`.",
)
