"""Starts service and monitor as processes with their own settings, and stops them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx

from lifelong_core.values.errors import ConfigurationError, UnavailableError

START_SECONDS = 60.0
STOP_SECONDS = 10.0


def free_ports(count: int) -> list[int]:
    """Different ports of the loopback address that nothing listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@dataclass(frozen=True)
class RunningProcess:
    """A started process and the file that holds its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_lines(self) -> str:
        """The end of what the process printed, for error messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


class Processes:
    """Child processes, each in a session of its own so that its workers end with it; a context manager."""

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        self._directory = directory
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("LIFELONG_")}
        # a lifelong.toml in the user's folder must not reach into the demo
        configuration = directory / "lifelong.toml"
        configuration.touch()
        self._environment = inherited | settings | {"LIFELONG_CONFIG": str(configuration)}
        self._running: list[RunningProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, command: str) -> RunningProcess:
        """Start `lifelong COMMAND` with its output in a log file."""
        log = self._directory / f"{command}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - our own command line
                [sys.executable, "-m", "lifelong", command],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = RunningProcess(command, process, log)
        self._running.append(running)
        return running

    def wait_until_ready(self, running: RunningProcess, url: str) -> float:
        """Wait until `url` answers 200; returns the seconds that it took.

        Raises:
            ConfigurationError: the process ended instead; the message holds its last words.
            UnavailableError: it is not ready within a minute.
        """
        started = time.monotonic()
        while time.monotonic() - started < START_SECONDS:
            if running.process.poll() is not None:
                raise ConfigurationError(f"`lifelong {running.name}` ended at once:\n{running.last_lines()}")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(url, timeout=2, trust_env=False).status_code == httpx.codes.OK:
                    return time.monotonic() - started
            time.sleep(0.1)
        raise UnavailableError(
            f"`lifelong {running.name}` is not ready after {START_SECONDS:.0f} s:\n{running.last_lines()}"
        )

    def stop(self) -> None:
        """Terminate every process, and kill those that do not end."""
        for running in reversed(self._running):
            _signal_session(running.process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for running in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(max(0.0, deadline - time.monotonic()))
            # Workers outlive a parent that was killed: the whole session goes.
            _signal_session(running.process, signal.SIGKILL)
            running.process.wait()
        self._running.clear()


def _signal_session(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
