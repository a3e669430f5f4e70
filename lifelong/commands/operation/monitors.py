"""`lifelong monitors`: the running monitors and their state."""

from typing import TYPE_CHECKING

import click

from lifelong.commands.common import as_json, open_store
from lifelong.commands.tables import print_rows

if TYPE_CHECKING:
    from lifelong_core.store import MonitorProcess, Tick


@click.command(short_help="List the monitors of all machines.")
@as_json
def monitors(*, as_json: bool) -> None:
    """List the monitors of all machines and their last ticks; `lifelong doctor` says what is wrong.

    Monitors with the same settings show the same digest under "settings". All monitors need the same settings.
    """
    with open_store() as store:
        rows = [_row(one) for one in store.monitors.list()]
    print_rows(
        rows, as_json=as_json, empty="No monitor runs, nor was one lost within a day: `lifelong monitor`."
    )


def _row(one: "MonitorProcess") -> dict[str, object]:
    from lifelong_core.configuration.monitor_settings import settings_digest

    heartbeat = one.heartbeat
    own = [f"{environment}: {mode}" for environment, mode in sorted(heartbeat.environment_modes.items())]
    return {
        "host": heartbeat.host,
        "process": heartbeat.process,
        "state": "lost" if one.is_lost else _state(heartbeat.tick),
        "seen_at": one.seen_at,
        "mode": ", ".join([heartbeat.mode, *own]),
        "settings": None if heartbeat.settings is None else settings_digest(heartbeat.settings),
        "interval": f"{heartbeat.interval_seconds:g} s",
        "populations": len(heartbeat.visits),
    }


def _state(tick: "Tick | None") -> str:
    if tick is None:
        return "starting"
    if tick.finished_at is None:
        return "in a tick"
    return "waiting" if tick.problem is None else "failing"
