"""Work that a command asks of a monitor: the job is submitted, and its end awaited."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from lifelong.commands.common import actor
from lifelong.commands.durations import Duration

if TYPE_CHECKING:
    from lifelong_core.store import Job, Store

POLL_SECONDS = 0.2

timeout_option = click.option(
    "--timeout",
    type=Duration(),
    default="10m",
    show_default=True,
    help="Longest time to wait for the monitor, e.g. 30s; then the job goes on without the command.",
)


def run_job(store: "Store", kind: str, payload: Mapping[str, Any], timeout: timedelta) -> "Job":
    """Submit a job and wait until a monitor has done it.

    Args:
        store: holds the jobs.
        kind: of the job.
        payload: of the job, a JSON object.
        timeout: longest time to wait.

    Returns:
        The job, succeeded.

    Raises:
        UnavailableError: no monitor runs, or the job did not end in time.
        ConflictError: the job failed.
    """
    from lifelong_core.errors import ConflictError, UnavailableError

    if all(monitor.is_lost for monitor in store.monitors.list(visits=False)):
        raise UnavailableError(
            "no monitor runs, and monitors do the jobs.", hint="Start one: `lifelong monitor`."
        )
    job = store.jobs.submit(kind, payload, actor=actor())
    until = time.monotonic() + timeout.total_seconds()
    while job.finished_at is None:
        if time.monotonic() >= until:
            raise UnavailableError(
                f"the job {job.id} is still {job.state} after {timeout.total_seconds():g} s.",
                hint=f"It goes on; its end: GET /v1/admin/jobs/{job.id}. `lifelong monitors` lists the monitors.",
            )
        time.sleep(POLL_SECONDS)
        job = store.jobs.get(job.id)
    if job.state == "failed":
        error = job.error or {}
        raise ConflictError(error.get("message"), field=error.get("field"), hint=error.get("hint"))
    return job
