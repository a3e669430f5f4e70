"""A service and a monitor as users start them, on one data directory."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

PATIENCE_SECONDS = 300.0


def until(happened: Callable[[], Any], what: str) -> Any:
    """The first true value of `happened`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := happened()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.05)
    return value


@contextmanager
def running(command: str, log: Path) -> Iterator[None]:
    """`lifelong COMMAND` with the environment of this process; it ends with the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "lifelong", command],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield
        process.terminate()
        process.wait(PATIENCE_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(url: str) -> bool:
    """Whether a URL is answered with success."""
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=5).status_code < 400
    return False
