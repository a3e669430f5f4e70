"""A thread for calls that may hang; its callers wait only up to a deadline."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar, cast

from lifelong_core.values.errors import UnavailableError

Result = TypeVar("Result")

SLICE_SECONDS = 0.5
"""Interval at which a waiting caller checks its deadline; after `hurry`, the approximate longest wait of a caller."""


class _Call:
    """One call and its result; the lock `done` is released when the call has ended."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.result: object = None
        self.error: BaseException | None = None
        self.has_ended = False
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - `call` raises it in the thread of the caller
            self.error = error
        self.has_ended = True
        self.done.release()


class DeadlineThread:
    """Makes one call at a time. A caller stops waiting at its deadline; the call may still take effect later.

    Calls are made from one thread only. A driver cannot be interrupted: while a call is stuck, later ones fail at once.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._last: _Call | None = None
        self._hurried = False
        # A daemon: a call that never ends must not prevent the process from ending.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_stuck(self) -> bool:
        """Whether a call outlasts its deadline."""
        return (last := self._last) is not None and not last.has_ended

    def call(self, work: Callable[[], Result], seconds: float) -> Result:
        """Return the result of the work, or raise its error.

        Args:
            work: the function to call; it may hang.
            seconds: longest wait.

        Raises:
            UnavailableError: the work has not ended by then, and its effect is unknown; or an earlier call has not
                ended yet, and the work was not started.
        """
        if self.is_stuck:
            raise UnavailableError("the database has not yet answered the query before this one.")
        call = self._last = _Call(work)
        self._calls.put(call)
        self._wait(call, seconds)
        self._last = None
        if call.error is None:
            return cast("Result", call.result)
        try:
            raise call.error
        finally:
            # Its traceback refers to the call: a reference cycle that only the garbage collector would free.
            call.error = None

    def hurry(self) -> None:
        """Shorten all deadlines to SLICE_SECONDS, because the process is about to end."""
        self._hurried = True

    def close(self) -> None:
        """End the thread after its present call, without waiting."""
        self._calls.put(None)

    def _wait(self, call: _Call, seconds: float) -> None:
        end = time.monotonic() + seconds
        left = seconds
        while not call.done.acquire(timeout=max(0.0, min(left, SLICE_SECONDS))):
            left = end - time.monotonic()
            if left <= 0 or self._hurried:
                raise UnavailableError("the database has not answered in time.")

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            del call  # frees its memory before the next call arrives
