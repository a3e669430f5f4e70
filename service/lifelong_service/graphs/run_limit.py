"""A time limit for runs of graphs, which ONNX Runtime itself does not have."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import onnxruntime

LOOK_SECONDS: Final = 0.25
"""How often is looked whether a run has taken too long."""
_FATAL: Final = 4
"""The only severity that is printed: messages would stand between the lines of the log, and show shapes."""


class RunLimit:
    """Ends runs that take too long; one for all graphs of a process.

    ONNX Runtime looks before each operator, and in each turn of a loop, whether it has to end. An operator that hangs
    by itself is not ended.

    Args:
        seconds: that one run may take.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._running: dict[int, tuple[float, onnxruntime.RunOptions]] = {}
        self._changing = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-limit", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def close(self) -> None:
        """Watch no longer."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    @contextmanager
    def limit(self) -> Iterator[onnxruntime.RunOptions]:
        """The options with which to run graphs within the block; their `terminate` is set when the time is over."""
        options = onnxruntime.RunOptions()
        options.log_severity_level = _FATAL
        with self._changing:
            self._running[id(options)] = time.monotonic() + self.seconds, options
        try:
            yield options
        finally:
            with self._changing:
                del self._running[id(options)]

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            now = time.monotonic()
            with self._changing:
                late = [options for ends_at, options in self._running.values() if now >= ends_at]
            for options in late:
                options.terminate = True
