"""A time limit for runs of graphs, which ONNX Runtime itself does not have."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import onnxruntime

from lifelong_core.runtime.background import RepeatingThread

LOOK_SECONDS: Final = 0.25
"""Time between two checks for late runs."""
_FATAL: Final = 4
"""Least severity that is printed: other messages would break the log format, and show shapes."""


class RunLimit:
    """Ends runs that take too long; one for all graphs of a process.

    ONNX Runtime checks `terminate` before each operator and in each turn of a loop. A hanging operator is not ended.

    Args:
        seconds: time limit of one run.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._running: dict[int, tuple[float, onnxruntime.RunOptions]] = {}
        self._changing = threading.Lock()
        self._thread = RepeatingThread("run-limit", self._end_late_runs, seconds=LOOK_SECONDS)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    @contextmanager
    def limit(self) -> Iterator[onnxruntime.RunOptions]:
        """Yield options for runs of graphs in the block; `terminate` is set when the time limit is over."""
        options = onnxruntime.RunOptions()
        options.log_severity_level = _FATAL
        with self._changing:
            self._running[id(options)] = time.monotonic() + self.seconds, options
        try:
            yield options
        finally:
            with self._changing:
                del self._running[id(options)]

    def _end_late_runs(self) -> None:
        now = time.monotonic()
        with self._changing:
            late = [options for ends_at, options in self._running.values() if now >= ends_at]
        for options in late:
            options.terminate = True
