"""The subprocess of a job: it is started, watched and ended; its output is kept in bounded space.

A pipe leads from the runner to the subprocess. At each renewal of the claim, the runner writes for how long the job is
held. The subprocess ends itself at the end of the pipe (the runner was killed) and after too long a silence (the runner
hangs, or has lost the job).
"""

import os
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Self

from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.jobs.running.outcome import LESS_MEMORY, JobError, Outcome
from lifelong_monitor.jobs.running.redaction import last_lines

_LONGEST_OUTCOME = 4_000_000
"""More than the store takes, which says better what is wrong."""
_LONGEST_REPORT = 50_000
"""Bytes of standard error that are looked at: more than are kept, so that nothing is cut in the middle of a row."""
_PIPE_SECONDS = 2.0
"""Longest wait for the pipes of a killed process group; only a process outside the group can keep them open."""

_READ_THE_LOG = "Look into the log of the monitor; if what was asked for is right, report this."

HOLD = struct.Struct("<d")
"""Seconds from now on; so short that a pipe gives it whole or not at all."""
ABANDONED = 75
"""Exit status of a subprocess whose runner was gone, or silent for too long."""
_FIRST_HOLD_SECONDS = 60.0


class JobProcess:
    """Runs a command in a process group of its own, and ends it at the end of the block.

    The command's standard input is the pipe that `end_with_runner` reads.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._environment = environment
        # A group of its own: an interrupt from the terminal is for the monitor, which then ends the job.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._output = _Tail(self._process.stdout, _LONGEST_OUTCOME)
        self._errors = _Tail(self._process.stderr, _LONGEST_REPORT)

    @property
    def pid(self) -> int:
        """Its id, which is that of its session and process group, too."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def outcome(self) -> Outcome | None:
        """The outcome that it wrote, once it has ended; None: it wrote none that can be read."""
        return Outcome.from_json(self._output.content)

    @property
    def report(self) -> str:
        """The end of its standard error, without secrets and without data."""
        return last_lines(self._errors.content.decode(errors="replace"), self._environment)

    def hold(self, seconds: float) -> None:
        """Let the process run for so many seconds from now."""
        pipe = self._process.stdin
        if pipe is not None:
            with suppress(BrokenPipeError):
                os.write(pipe.fileno(), HOLD.pack(seconds))

    def end(self) -> None:
        """Kill the process unless it has ended; artifacts appear whole or not at all, so nothing is left to delete."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._output.close()
        self._errors.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it, if it has not ended."""
        self.end()


class _Tail:
    """Reads a pipe to its end, in a thread, and keeps the last bytes."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        assert pipe is not None  # noqa: S101 - for the type checker: it was asked for
        self._pipe = pipe
        self._limit = limit
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="job-output", daemon=True)
        self._thread.start()

    @property
    def content(self) -> bytes:
        """The last bytes, when the process has ended."""
        self._thread.join(_PIPE_SECONDS)
        return self._kept

    def close(self) -> None:
        """Give the pipe back."""
        self._thread.join(_PIPE_SECONDS)
        if not self._thread.is_alive():
            self._pipe.close()

    def _read(self) -> None:
        while chunk := os.read(self._pipe.fileno(), 65_536):
            self._kept = (self._kept + chunk)[-self._limit :]


def outcome_of_process(process: JobProcess, *, is_resumable: bool) -> Outcome:
    """The outcome that an ended process sent, or the error that it crashed.

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
        f"it crashed: its process ended {_how(status)}.{_last_lines(process)}",
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


def _last_lines(process: JobProcess) -> str:
    report = process.report
    return f" Its last words:\n{report}" if report else ""


def end_with_runner() -> None:
    """Watch standard input, and end this process at once when no monitor holds its job.

    Another runner restarts the job when this runner was killed or hangs; two processes must not do the same job.
    """

    def watch() -> None:
        # Nothing is known before the runner's first word.
        until = time.monotonic() + _FIRST_HOLD_SECONDS
        while select.select([0], [], [], max(0.0, until - time.monotonic()))[0]:
            word = os.read(0, HOLD.size)
            if not word:
                break
            until = time.monotonic() + HOLD.unpack(word)[0]
        os._exit(ABANDONED)

    threading.Thread(target=watch, name="runner", daemon=True).start()
