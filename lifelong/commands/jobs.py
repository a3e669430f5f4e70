"""`lifelong jobs`: work that monitors do; and how a command submits a job and waits for its end."""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, get_args
from uuid import UUID

import click

from lifelong.commands.common import CommandGroup, actor, as_json, open_store
from lifelong.commands.connection import Connection, connect
from lifelong.commands.durations import Duration
from lifelong.commands.job_following import Shown, follow_until_end
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.entities.jobs import Job, JobAnswer, JobState, LogLine
from lifelong_core.operations.administration.jobs import CancelJob, ListJobs, ShowJob, ShowLog
from lifelong_core.operations.administration.processes import ListMonitors
from lifelong_core.operations.operation import Call
from lifelong_core.store import Store
from lifelong_core.values.errors import ConflictError, UnavailableError

POLL_SECONDS = 0.2
FAILED = 1
"""Exit status where the shown job has failed or was cancelled."""

timeout_option = click.option(
    "--timeout",
    type=Duration(),
    default="10m",
    show_default=True,
    help="Longest time to wait for the monitor, e.g. 30s; then the job goes on without the command.",
)


def run_operation(connection: Connection, call: Call[JobAnswer], timeout: timedelta) -> JobAnswer:
    """Carry out an operation that submits a job, and wait until a monitor has done the job.

    Raises:
        UnavailableError: no monitor runs, or the job did not end in time.
        ConflictError: the job failed or was cancelled.
    """
    expect_monitor(connection)
    submitted = connection.send(call)
    return expect_success(await_job(lambda job: connection.send(ShowJob(job=job)), submitted, timeout))


def expect_monitor(place: Store | Connection) -> None:
    """Make sure that a monitor runs, which does the jobs.

    Raises:
        UnavailableError: none runs.
    """
    if isinstance(place, Store):
        is_lost = [monitor.is_lost for monitor in place.monitors.list(visits=False)]
    else:
        is_lost = [monitor.lost for monitor in place.send(ListMonitors()).monitors]
    if all(is_lost):
        raise UnavailableError(
            "no monitor runs, and monitors do the jobs.", hint="Start one: `lifelong monitor`."
        )


def finish_job(store: Store, job: Job, timeout: timedelta) -> Job:
    """The job when it has succeeded.

    Raises:
        UnavailableError: it did not end in time.
        ConflictError: it failed or was cancelled.
    """
    return expect_success(await_job(store.jobs.get, job, timeout))


def expect_success(job: Shown) -> Shown:
    """The job itself, which has ended.

    Raises:
        ConflictError: it failed or was cancelled.
    """
    if job.state != "succeeded":
        error = job.error or {}
        message = error.get("message") or f"the job was {job.state}."
        raise ConflictError(message, field=error.get("field"), hint=error.get("hint"))
    return job


def await_job(look: Callable[[UUID], Shown], job: Shown, timeout: timedelta) -> Shown:
    """The job when it has ended.

    Args:
        look: returns the present state of the job with an id.
        job: submitted.
        timeout: longest time to wait.

    Raises:
        UnavailableError: it did not end in time.
    """
    until = time.monotonic() + timeout.total_seconds()
    while job.finished_at is None:
        if time.monotonic() >= until:
            raise UnavailableError(
                f"the job {job.id} is still {job.state} after {timeout.total_seconds():g} s.",
                hint=f"It goes on: `lifelong jobs show {job.id}`. `lifelong monitors` lists the monitors.",
            )
        time.sleep(POLL_SECONDS)
        job = look(job.id)
    return job


@click.group(cls=CommandGroup, short_help="Work that monitors do.")
def jobs() -> None:
    """Work that takes longer than a request may: trainings, validations, promotion reports, fingerprints, cycles."""


@jobs.command("list")
@click.option("--kind", help="Only jobs of this kind, such as fingerprint.")
@click.option("--state", type=click.Choice(get_args(JobState)), help="Only jobs in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of jobs.")
@as_json
def list_jobs(kind: str | None, state: Any, limit: int, *, as_json: bool) -> None:
    """List the newest jobs, newest first."""
    with connect() as connection:
        listed = connection.send(ListJobs(kind=kind, state=state, limit=limit))
    rows = [_row(job) for job in listed.jobs]
    if not as_json:
        for row in rows:
            row["error"] = " ".join(text for text in (row["error"], row.pop("hint")) if text) or None
    print_rows(rows, as_json=as_json, empty="There is no such job.", below="error")


@jobs.command()
@click.argument("job", type=click.UUID)
@click.option("--wait", is_flag=True, help="Wait until it has ended.")
@timeout_option
@as_json
def show(job: UUID, timeout: timedelta, *, wait: bool, as_json: bool) -> None:
    """Show the request, state, progress and result of a job. Exit status 1: it has failed or was cancelled."""
    with connect() as connection:
        shown = connection.send(ShowJob(job=job))
        if wait:
            shown = await_job(lambda job: connection.send(ShowJob(job=job)), shown, timeout)
    document = shown.to_document()
    if as_json:
        echo(json.dumps(document))
    else:
        for name, value in document.items():
            text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
            if text is not None:
                echo(wrap_text(str(text), first=f"{name.replace('_', ' '):14}", indent=" " * 14))
    _exit_unless_well(shown)


@jobs.command()
@click.argument("job", type=click.UUID)
def follow(job: UUID) -> None:
    """Show log and progress of a job until it ends. Exit status 1: it has failed or was cancelled.

    Ctrl-C ends the command, not the job.
    """
    from lifelong.rich_console import Console

    with connect() as connection:

        def look(job: UUID) -> JobAnswer:
            return connection.send(ShowJob(job=job))

        def read_log(job: UUID, after: int) -> list[LogLine]:
            return connection.send(ShowLog(job=job, after=after)).lines

        ended = follow_until_end(look, read_log, look(job).id, Console())
    error = ended.error or {}
    for text in (error.get("message"), error.get("hint")):
        if text:
            echo(wrap_text(text))
    _exit_unless_well(ended)


@jobs.command()
@click.argument("job", type=click.UUID, required=False)
@click.option(
    "--created-by", metavar="NAME", help="Instead of one JOB: all queued jobs of this token or user."
)
@click.option("--kind", help="With --created-by: only jobs of this kind, such as cycle.")
def cancel(job: UUID | None, created_by: str | None, kind: str | None) -> None:
    """Cancel a job: one that waits ends at once, a running one within seconds."""
    if (job is None) == (created_by is None) or (job is not None and kind is not None):
        raise click.UsageError("expected the id of a job, or --created-by NAME with or without --kind.")
    if job is None:
        with open_store() as store:
            cancelled = store.jobs.cancel_queued(created_by or "", kind=kind, actor=actor())
        echo(f"{cancelled} queued jobs of {created_by} are cancelled.")
        return
    with connect() as connection:
        asked = connection.send(CancelJob(job=job))
    if asked.finished_at is None:
        echo(f"The job {job} is ended by its monitor: `lifelong jobs follow {job}`.")
    else:
        echo(f"The job {job} is cancelled.")


def _exit_unless_well(job: JobAnswer) -> None:
    if job.state in ("failed", "cancelled"):
        raise click.exceptions.Exit(FAILED)


def _row(job: JobAnswer) -> dict[str, Any]:
    fraction = (job.progress or {}).get("fraction")
    return {
        "id": str(job.id),
        "kind": job.kind,
        "state": job.state,
        "progress": None if fraction is None else f"{fraction:.0%}",
        "attempts": job.attempts,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "created_by": job.created_by,
        "error": (job.error or {}).get("message"),
        "hint": (job.error or {}).get("hint"),
    }
