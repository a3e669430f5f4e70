"""Background threads: daemons with a name and a stop event, which can be joined."""

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class BackgroundThread:
    """Runs a function in a daemon thread, so that a call that hangs does not prevent the process from ending.

    Args:
        name: of the thread, for logs and debuggers.
        run: called once in the thread; returns soon after `stopping` is set.
        stopping: an event that several threads share; None: one for this thread alone.

    Attributes:
        stopping: set when the thread has to end.
    """

    def __init__(
        self, name: str, run: Callable[[], object], *, stopping: threading.Event | None = None
    ) -> None:
        self.stopping = threading.Event() if stopping is None else stopping
        self._thread = threading.Thread(target=run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: it has been started before.
        """
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread has started and not ended."""
        return self._thread.is_alive()

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Set `stopping` and wait for the end of the thread; a thread that was never started has ended.

        Args:
            timeout_seconds: longest wait; None: without limit.

        Returns:
            Whether the thread has ended.
        """
        self.stopping.set()
        return self.join(timeout_seconds)

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the end of the thread without setting `stopping`; return whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()


class RepeatingThread(BackgroundThread):
    """Calls a function repeatedly until the thread is closed; errors are logged and do not end the repetition.

    Args:
        name: of the thread.
        work: called in the thread, first after one pause.
        seconds: pause before each call.
        stopping: as `BackgroundThread`.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        *,
        seconds: float,
        stopping: threading.Event | None = None,
    ) -> None:
        super().__init__(name, self._repeat, stopping=stopping)
        self._work = work
        self._seconds = seconds

    def _repeat(self) -> None:
        while not self.stopping.wait(self._seconds):
            try:
                self._work()
            except Exception:  # no error of the work may end the thread
                logger.exception("the thread %s goes on after an error", threading.current_thread().name)
