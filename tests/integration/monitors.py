"""The monitor as users run it: a real process on a free port."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.integration.processes import PATIENCE_SECONDS, eventually, variables_of
from tests.ports import free_port

MONITOR = (sys.executable, "-m", "lifelong_monitor")


@dataclass
class Monitor:
    """A monitor that was started."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def metrics(self, token: str = "") -> str:
        """What it exports; empty if it does not answer."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers=headers)
        with suppress(OSError), urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.read().decode()
        return ""

    def wait_until_it_watches(self) -> None:
        """Wait for the first line of its output: before it there is nothing to interrupt."""
        eventually(lambda: b"watching" in self.log.read_bytes(), "the monitor to watch")

    def terminate(self) -> int:
        """SIGTERM; its exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        """SIGKILL to it and to all its child processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start_monitor(
    folder: Path,
    *,
    command: Sequence[str] = MONITOR,
    environment: Mapping[str, str] | None = None,
    log: str = "monitor.log",
    **settings: object,
) -> Monitor:
    """Start a monitor with cycles every second; the caller ends it.

    Args:
        folder: working directory; the data directory is `folder / "data"` unless the settings say otherwise.
        command: another command line.
        environment: more environment variables.
        log: name of the file of its output.
        settings: as the fields of Settings; None: the default of the product.
    """
    port = free_port()
    values = {"data_directory": folder / "data", "cycle_interval_seconds": 1, "monitor_port": port} | settings
    with (folder / log).open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables_of(values) | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Monitor(process, port, folder / log)


@contextmanager
def running_monitor(folder: Path, **arguments: object) -> Iterator[Monitor]:
    """A monitor until the end of the block; arguments as of `start_monitor`."""
    monitor = start_monitor(folder, **arguments)  # type: ignore[arg-type]
    try:
        yield monitor
        if monitor.runs:
            monitor.terminate()
    finally:
        monitor.kill()
