"""Checks of the processes, by what they leave in the database."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

from lifelong.doctor.findings import Finding, Installation, ok, warning

_CATCHING_UP_SECONDS = 2.0
"""A worker acknowledges a change of the registry within this time."""
_MISSED_CYCLES = 2


def workers(installation: Installation) -> Iterator[Finding]:
    """They live and serve the present heads."""
    store = installation.store
    seen = store.workers.list()
    living = [worker for worker in seen if not worker.is_lost]
    for worker in seen:
        if worker.is_lost:
            yield warning(
                f"worker {worker.process} on {worker.host} was seen last at {worker.seen_at:%Y-%m-%d %H:%M:%S} UTC.",
                "If it was stopped by force, another took its place; it goes from the list after a day.",
            )
    if not living:
        yield warning("no worker is running.", "Start one: `lifelong serve`.")
    revision = store.revision()
    if any(worker.revision < revision for worker in living):
        time.sleep(_CATCHING_UP_SECONDS)
    for worker in store.workers.list():
        if not worker.is_lost and worker.revision < revision:
            yield warning(
                f"worker {worker.process} on {worker.host} serves an older state of the registry.",
                "Look into its log: it cannot read the database, or not load a model.",
            )
    yield ok(f"{len(living)} running.")


def monitor(installation: Installation) -> Iterator[Finding]:
    """Cycles run, and no monitor died in the middle of one without another taking over."""
    store, settings = installation.store, installation.settings
    interval = timedelta(seconds=settings.cycle_interval_seconds)
    for lease in store.health.leases():
        if lease.is_over and installation.now - lease.expires_at > interval:
            yield warning(
                f"{lease.holder} died while it held {lease.name}, and nobody has taken it over since"
                f" {lease.expires_at:%Y-%m-%d %H:%M} UTC.",
                "Start a monitor: `lifelong monitor`.",
            )
    populations = store.predictions.populations(installation.now - settings.window_age)
    last = [store.cycles.last(*population) for population in populations]
    newest = max((cycle.finished_at for cycle in last if cycle is not None), default=None)
    if populations and (newest is None or installation.now - newest > _MISSED_CYCLES * interval):
        yield warning(
            f"there are predictions, and {_since(newest)}.",
            "Is `lifelong monitor` running, and has the model a calibration set?",
        )
    held = [f"{lease.name} by {lease.holder}" for lease in store.health.leases() if not lease.is_over]
    yield ok(f"cycles are up to date; {', '.join(held) or 'none runs now'}.")


def _since(newest: datetime | None) -> str:
    return (
        "no cycle has ever run" if newest is None else f"no cycle has run since {newest:%Y-%m-%d %H:%M} UTC"
    )
