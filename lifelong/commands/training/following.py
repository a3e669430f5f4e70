"""Follows a job until it ends: its log lines, and its progress as a bar on a terminal."""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from lifelong_core.store import Job, Store

POLL_SECONDS = 0.5


def follow_job(store: "Store", job: "Job", console: "Console") -> "Job":
    """Write the log of a job, with a progress bar on a terminal, until it has ended; return it.

    Args:
        store: holds the job.
        job: submitted.
        console: standard error, so that the result alone goes to standard output.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.text import Text

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    after = 0
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        bar = bars.add_task("waiting for a monitor", total=1.0)
        while True:
            present = store.jobs.get(job.id)
            for line in store.jobs.log(job.id, after=after):
                after = line.number
                console.print(Text(line.text, style="not bold"))
            progress = present.progress or {}
            bars.update(
                bar, description=_describe(present, progress), completed=progress.get("fraction", 0.0)
            )
            if present.finished_at is not None:
                return present
            time.sleep(POLL_SECONDS)


def _describe(job: "Job", progress: dict[str, Any]) -> str:
    """Phase, epoch, validation loss and time left."""
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
    """A duration for people, such as 40 s, 12 min or 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
