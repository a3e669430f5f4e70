"""What became of a job's subprocess that has ended, also when it crashed."""

import signal

from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.jobs.outcome import LESS_MEMORY, JobError, Outcome
from lifelong_monitor.jobs.parent_watchdog import ABANDONED
from lifelong_monitor.jobs.process import JobProcess

_READ_THE_LOG = "Look into the log of the monitor; if what was asked for is right, report this."


def outcome_of_process(process: JobProcess, *, is_resumable: bool) -> Outcome:
    """The outcome that a process told which ended by itself, or that it crashed.

    Args:
        process: has ended.
        is_resumable: whether the next attempt goes on from a checkpoint: then a kill of the process is no failure.
    """
    status, outcome = process.status, process.outcome
    if status == ABANDONED:
        return Outcome.of_error(UnavailableError("this monitor gave no sign of life for too long."))
    if status == 0 and outcome is not None:
        return outcome
    is_killed = status == -signal.SIGKILL
    error = JobError(
        f"it crashed: its process ended {_how(status)}.{_last_words(process)}",
        hint=f"Was the memory full? The log of the kernel says so. {LESS_MEMORY}"
        if is_killed
        else _READ_THE_LOG,
    )
    return Outcome(error=error, is_passing=is_killed and is_resumable)


def _how(status: int | None) -> str:
    if status is None or status >= 0:
        return f"with status {status}" if status else "without a word of what came out"
    how = f"by signal {-status} ({signal.strsignal(-status)})"
    return f"{how}, perhaps because the memory was full" if -status == signal.SIGKILL else how


def _last_words(process: JobProcess) -> str:
    report = process.report
    return f" Its last words:\n{report}" if report else ""
