"""The subprocess of a job: started, watched and ended; what it says is kept in bounded space."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Self

from lifelong_monitor.jobs.outcome import Outcome
from lifelong_monitor.jobs.parent_watchdog import HOLD
from lifelong_monitor.jobs.redaction import last_words

_LONGEST_OUTCOME = 4_000_000
"""More than the store takes, which says better what is wrong."""
_LONGEST_REPORT = 50_000
"""Bytes of standard error that are looked at: more than are kept, so that nothing is cut in the middle of a row."""
_PIPE_SECONDS = 2.0
"""Longest wait for the pipes of a killed process group; only a process outside the group can keep them open."""


class JobProcess:
    """Runs a command in a process group of its own, and ends it at the end of the block.

    The command's standard input is the pipe that `parent_watchdog` reads.
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
        self._said = _Tail(self._process.stdout, _LONGEST_OUTCOME)
        self._complained = _Tail(self._process.stderr, _LONGEST_REPORT)

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
        """What it told, once it has ended; None: it told nothing that could be understood."""
        return Outcome.from_json(self._said.content)

    @property
    def report(self) -> str:
        """The end of what it wrote to standard error, without secrets and without data."""
        return last_words(self._complained.content.decode(errors="replace"), self._environment)

    def hold(self, seconds: float) -> None:
        """Let it go on for so long from now."""
        pipe = self._process.stdin
        if pipe is not None:
            with suppress(BrokenPipeError):
                os.write(pipe.fileno(), HOLD.pack(seconds))

    def end(self) -> None:
        """Kill it, if it has not ended: it has nothing to tidy up, since artifacts appear whole or not at all."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._said.close()
        self._complained.close()

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
