"""Follows a job until it ends: its log lines, and its progress as a bar on a terminal or as lines."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from lifelong_core.entities.jobs import Job, JobAnswer, LogLine
from lifelong_core.store import Store
from lifelong_core.values.errors import UnavailableError

if TYPE_CHECKING:
    from lifelong.rich_console import Console

POLL_SECONDS = 0.5
_AGAIN_SECONDS = 2.0
Value = TypeVar("Value")
Shown = TypeVar("Shown", Job, JobAnswer)


def follow_job(store: Store, job: Job, console: "Console") -> Job:
    """Write log and progress of a job of this machine's store until it has ended; see `follow_until_end`."""
    return follow_until_end(
        store.jobs.get, lambda job_id, after: store.jobs.log(job_id, after=after), job.id, console
    )


def follow_until_end(
    look: Callable[[UUID], Shown],
    read_log: Callable[[UUID, int], Sequence[LogLine]],
    job_id: UUID,
    console: "Console",
) -> Shown:
    """Write log and progress of a job until it has ended; return it. An outage of the database is waited for.

    Args:
        look: returns the present state of the job with an id.
        read_log: returns the lines of its log behind the one with a number.
        job_id: of a job that exists.
        console: where it is written.

    Raises:
        NotFoundError: the job was deleted.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    after, shown = 0, ""
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        bar = bars.add_task("", total=1.0)
        while True:
            job = _patiently(partial(look, job_id), console)
            for line in _patiently(partial(read_log, job_id, after), console):
                after = line.number
                _print(console, line.text)
            fraction = (job.progress or {}).get("fraction", 0.0)
            bars.update(bar, description=describe_progress(job), completed=fraction)
            if not console.is_terminal and (said := describe_progress(job)) != shown:
                shown = said
                _print(console, f"{said} ({fraction:.0%})" if job.progress else said)
            if job.finished_at is not None:
                return job
            time.sleep(POLL_SECONDS)


def describe_progress(job: Job | JobAnswer) -> str:
    """State of a job; while it runs, its phase and epoch with the loss and the time left."""
    progress: dict[str, Any] = job.progress or {}
    if job.state == "running" and job.cancelled_at is not None:
        return "running, to be cancelled"
    if job.state != "running" or "phase" not in progress:
        return job.state
    parts = [str(progress["phase"]).replace("_", " ")]
    if progress.get("epoch") is not None and progress.get("epochs") is not None:
        parts.append(f"epoch {progress['epoch']} of at most {progress['epochs']}")
    if progress.get("validation_loss") is not None:
        parts.append(f"validation loss {progress['validation_loss']:.3f}")
    if progress.get("seconds_left") is not None:
        parts.append(f"at most {format_seconds(progress['seconds_left'])} left")
    return ", ".join(parts)


def format_seconds(seconds: float) -> str:
    """A duration for people.

    Examples:
        >>> format_seconds(40), format_seconds(720), format_seconds(12600)
        ('40 s', '12 min', '3.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _patiently(ask: Callable[[], Value], console: "Console") -> Value:
    """The answer of the database, as soon as it gives one."""
    is_said = False
    while True:
        try:
            return ask()
        except UnavailableError as error:
            if not is_said:
                _print(console, f"waiting: {error}")
            is_said = True
            time.sleep(_AGAIN_SECONDS)


def _print(console: "Console", text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
