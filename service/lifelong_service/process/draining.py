"""Draining after SIGTERM: the worker reports not ready at once, answers for a short time, then the server stops."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

ENDING_SECONDS = 6
"""Time after which a worker that stops itself is killed; longer than all parts of its end together."""

logger = logging.getLogger(__name__)


class Draining:
    """Delays SIGTERM for the server, and shortens the time limits of requests.

    On SIGTERM the server would close its listener at once, before a load balancer reacts, and new connections would
    hang. So the server gets the signal after a pause. It answers 500 to requests above its own time limit, so ours is
    shorter.

    Args:
        begin: called at once in the signal handler.
        listening_seconds: time from the signal to the end of the listener.
        seconds: time from the signal to the end of all requests.
    """

    def __init__(self, begin: Callable[[], None], *, listening_seconds: float, seconds: float) -> None:
        self._begin = begin
        self._listening_seconds = listening_seconds
        self._seconds = seconds
        self._end: float | None = None
        self._limits: set[asyncio.Timeout] = set()

    @property
    def has_begun(self) -> bool:
        """Whether the signal has arrived."""
        return self._end is not None

    def start(self) -> None:
        """Install the handler. Call it in the event loop, after the server has installed its own."""
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread handles signals: the application runs inside another program
        stop = signal.getsignal(signal.SIGTERM)
        if not callable(stop):
            return
        loop = asyncio.get_running_loop()

        def handle(number: int, frame: FrameType | None) -> None:
            self._begin()
            loop.call_soon_threadsafe(self.hurry)
            loop.call_soon_threadsafe(loop.call_later, self._listening_seconds, stop, number, frame)

        signal.signal(signal.SIGTERM, handle)

    def hurry(self) -> None:
        """Shorten the limits of all present and future requests. Call it in the event loop."""
        if self._end is None:
            self._end = asyncio.get_running_loop().time() + self._seconds
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(self._earlier(limit.when()))

    def limit(self, seconds: float) -> asyncio.Timeout:
        """Return a time limit for one request: `seconds`, or less while the worker drains."""
        limit = asyncio.timeout_at(self._earlier(asyncio.get_running_loop().time() + seconds))
        self._limits.add(limit)
        return limit

    def put_off(self, limit: asyncio.Timeout, moment: float) -> None:
        """Extend the limit of a request to this time of the event loop, unless the worker drains."""
        if not limit.expired():
            limit.reschedule(self._earlier(moment))

    def forget(self, limit: asyncio.Timeout) -> None:
        """Remove the limit of a request that has ended."""
        self._limits.discard(limit)

    def _earlier(self, moment: float | None) -> float | None:
        return moment if self._end is None or moment is None else min(moment, self._end)


def stop_worker(reason: str) -> None:
    """Send SIGTERM to this process; its parent, if it lives, starts another one.

    Without its parent it would hold the port and never be restarted or stopped.
    """
    logger.error("this worker stops", extra={"details": {"reason": reason}})
    # A thread that hangs outside Python can keep the process from ending; then the kernel ends it.
    signal.alarm(ENDING_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
