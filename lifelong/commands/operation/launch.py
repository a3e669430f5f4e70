"""`lifelong serve` and `lifelong monitor`: replace this process by the service or the monitor."""

import os
import sys

import click


def _become(module: str) -> None:
    os.execv(sys.executable, [sys.executable, "-m", module])  # noqa: S606 - our own module, no shell


@click.command(short_help="Serve predictions over HTTP.")
def serve() -> None:
    """Serve predictions: HTTP API, micro-batching, prediction log (LIFELONG_HOST, LIFELONG_PORT, LIFELONG_WORKERS)."""
    _become("lifelong_service")


@click.command(short_help="Watch the predictions and adapt heads.")
def monitor() -> None:
    """Watch the prediction log and adapt heads on a schedule (LIFELONG_CYCLE_INTERVAL_SECONDS, LIFELONG_POLICY__*)."""
    _become("lifelong_monitor")
