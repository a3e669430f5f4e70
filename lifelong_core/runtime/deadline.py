"""A thread for calls that may hang; its callers wait only up to a deadline."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar, cast

from lifelong_core.errors import UnavailableError

Result = TypeVar("Result")

SLICE_SECONDS = 0.5
"""Interval at which a waiting caller checks its deadline; after `hurry`, a caller waits hardly longer than this."""


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
        except BaseException as error:  # noqa: BLE001 - it is raised where the call was made
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
        # A daemon: a call that never ends must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin to make calls."""
        self._thread.start()

    @property
    def is_stuck(self) -> bool:
        """Whether a call outlasts its deadline."""
        return (last := self._last) is not None and not last.has_ended

    def call(self, work: Callable[[], Result], seconds: float) -> Result:
        """Return the result of the work, or raise its error.

        Args:
            work: a function that may hang.
            seconds: how long to wait for it.

        Raises:
            UnavailableError: it has not ended by then, and what it does is not known; or an earlier call has not
                ended yet, and this one was not begun.
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
            # Its traceback holds the call: a circle that only the garbage collector would find.
            call.error = None

    def hurry(self) -> None:
        """Shorten all deadlines to SLICE_SECONDS, because the process is about to end."""
        self._hurried = True

    def close(self) -> None:
        """End the thread after its present call; does not wait for it."""
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
            del call  # what it holds need not live until the next one comes
