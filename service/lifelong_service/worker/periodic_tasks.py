"""Threads of periodic tasks."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from lifelong_core.entities.registry import Registry
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.values.errors import LifelongError
from lifelong_service.worker.tasks import AuditTask, CacheKeeper, Heartbeat

Value = TypeVar("Value")

PERIOD_SECONDS = 10.0
"""Time between two heartbeats of a worker, and between two checks of its registry cache."""
CLOSING_SECONDS = 0.2
"""Time limit of each task at the end, e.g. to delete the worker's row."""

logger = logging.getLogger(__name__)


class PeriodicTask(Generic[Value]):
    """A thread that processes the latest value, at once and then periodically.

    Errors are logged, repeated equal ones once, and the next turn tries again.

    Args:
        failure_message: message for the log, e.g. "the registry cannot be cached".
        work: called with the value.
        seconds: time between two turns with the same value.
        finish: called at the end.
    """

    def __init__(
        self,
        failure_message: str,
        work: Callable[[Value], None],
        *,
        seconds: float,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self._failure_message = failure_message
        self._work = work
        self._seconds = seconds
        self._finish = finish
        self._value: Value | None = None
        self._failure: str | None = None
        self._wake = threading.Event()
        self._thread = BackgroundThread("periodic", self._run)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer(self, value: Value) -> None:
        """Replace the value; the next turn begins at once."""
        self._value = value
        self._wake.set()

    def close(self, seconds: float) -> None:
        """Finish and end the thread; wait at most this long."""
        self._thread.stopping.set()
        self._wake.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            self._wake.wait(self._seconds)
            self._wake.clear()
            value = self._value
            if value is not None and not self._thread.stopping.is_set():
                self._try(lambda value=value: self._work(value))
        self._try(self._finish)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except LifelongError as error:
            if str(error) != self._failure:
                logger.warning(self._failure_message, extra={"details": {"reason": str(error)}})
            self._failure = str(error)
        except Exception as error:
            if repr(error) != self._failure:
                logger.exception(self._failure_message)
            self._failure = repr(error)
        else:
            self._failure = None


class PeriodicTasks:
    """The periodic tasks of one worker; each gets every registry that is served.

    Args:
        cache: gets registries only while they are current.
        heartbeat: heartbeat of this worker.
        audit: audit task of this process.
        is_current: whether the database answered the latest poll.
    """

    def __init__(
        self, *, cache: CacheKeeper, heartbeat: Heartbeat, audit: AuditTask, is_current: Callable[[], bool]
    ) -> None:
        self._is_current = is_current
        self.cache = PeriodicTask("the registry cannot be cached on the disk", cache, seconds=PERIOD_SECONDS)
        self.heartbeat = PeriodicTask(
            "the heartbeat cannot be written", heartbeat, seconds=PERIOD_SECONDS, finish=heartbeat.withdraw
        )
        self.audit = PeriodicTask(
            "the audit log cannot be kept", audit, seconds=PERIOD_SECONDS, finish=audit.finish
        )

    def start(self) -> None:
        """Start the threads."""
        for task in (self.cache, self.heartbeat, self.audit):
            task.start()

    def offer(self, registry: Registry) -> None:
        """Hand a served registry to the tasks."""
        if self._is_current():
            self.cache.offer(registry)
        self.heartbeat.offer(registry)
        self.audit.offer(registry)

    def close(self) -> None:
        """Finish all tasks."""
        for task in (self.heartbeat, self.cache, self.audit):
            task.close(CLOSING_SECONDS)
