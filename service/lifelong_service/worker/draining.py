"""SIGTERM: say at once that this worker is not ready, go on for a moment, then let the server stop."""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType


class Draining:
    """The end of a worker, as its requests see it.

    The server closes its listener as soon as the signal comes, before a load balancer can know, and whoever is sent
    here then hangs. So there is a pause before it hears of the signal. And it answers 500 to those that it waits for
    no longer: they end before.

    Args:
        begin: called at once when the signal arrives, in the signal's handler.
        listening_seconds: how long the listener stays open.
        seconds: how long after the signal all requests have ended.
    """

    def __init__(self, begin: Callable[[], None], *, listening_seconds: float, seconds: float) -> None:
        self._begin = begin
        self._listening_seconds = listening_seconds
        self._seconds = seconds
        self._end: float | None = None
        self._limits: set[asyncio.Timeout] = set()

    @property
    def has_begun(self) -> bool:
        """Whether the signal has come."""
        return self._end is not None

    def start(self) -> None:
        """Wait for the signal. Call it in the server's event loop, when the server has set its own handler."""
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
        """Let all requests end in time, those that come yet included. Call it in the event loop."""
        if self._end is None:
            self._end = asyncio.get_running_loop().time() + self._seconds
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(self._earlier(limit.when()))

    def limit(self, seconds: float) -> asyncio.Timeout:
        """A time limit for one request: so many seconds, or less when the worker can wait no longer."""
        limit = asyncio.timeout_at(self._earlier(asyncio.get_running_loop().time() + seconds))
        self._limits.add(limit)
        return limit

    def forget(self, limit: asyncio.Timeout) -> None:
        """The request has ended."""
        self._limits.discard(limit)

    def _earlier(self, moment: float | None) -> float | None:
        return moment if self._end is None or moment is None else min(moment, self._end)
