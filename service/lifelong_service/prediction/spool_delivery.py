"""The thread that delivers the spool to the database and closes the circuit breaker when the database answers again."""

import logging
import threading
from collections.abc import Callable, Sequence

from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.store import Store
from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.spool import Spool
from lifelong_service import metrics
from lifelong_service.prediction.database_calls import DATABASE_FAILURES, CircuitBreaker

logger = logging.getLogger(__name__)

SHORTEST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 1.0
"""Largest pause between two attempts; the pause grows while the database does not answer."""
PREDICTIONS_AT_ONCE = 1000
CLOSING_SECONDS = 0.3
"""Time limit for the end of the thread; undelivered records stay in the spool."""


class DeliveryThread:
    """Delivers the spool. Each worker has one: one of them delivers, the others only check that the database answers.

    Attributes:
        is_near_end: whether the next delivery may empty the spool.

    Args:
        spool: spool of this machine.
        store: the open store; raises UnavailableError while there is none.
        circuit_breaker: opened and closed here.
        has_backlog: whether the spool holds predictions.
    """

    def __init__(
        self,
        spool: Spool,
        store: Callable[[], Store],
        circuit_breaker: CircuitBreaker,
        *,
        has_backlog: Callable[[], bool],
    ) -> None:
        self._spool = spool
        self._store = store
        self._circuit_breaker = circuit_breaker
        self._has_backlog = has_backlog
        self.is_near_end = False
        self._needed = threading.Event()
        self._pause = SHORTEST_PAUSE_SECONDS
        self._thread = BackgroundThread("spool-delivery", self._run)
        self._closing = self._thread.stopping

    def start(self) -> None:
        """Start the thread; it delivers first the records of earlier processes."""
        self._needed.set()
        self._thread.start()

    def wake(self) -> None:
        """Check the spool and the database now. Any thread may call this."""
        self._needed.set()

    def close(self) -> bool:
        """Stop; return whether the thread has ended within `CLOSING_SECONDS`."""
        self._closing.set()
        self._needed.set()
        return self._thread.close(CLOSING_SECONDS)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                is_needed = self._circuit_breaker.reason is not None or self._has_backlog()
                metrics.LOG_DEGRADED.set(is_needed)
                if not is_needed:
                    # With a time limit: another process may leave records in the spool.
                    self._needed.wait(LONGEST_PAUSE_SECONDS)
                    self._needed.clear()
                elif self._step():
                    self._pause = SHORTEST_PAUSE_SECONDS
                else:
                    self._closing.wait(self._pause)
                    self._pause = min(1.5 * self._pause, LONGEST_PAUSE_SECONDS)
            except Exception:  # the thread must outlive any fault, or the spool is never delivered
                logger.exception("the spool cannot be delivered")
                self._closing.wait(LONGEST_PAUSE_SECONDS)

    def _step(self) -> bool:
        """Deliver one portion, or check the database; return whether the next step may follow at once."""
        failures = self._circuit_breaker.failures
        delivered = None
        try:
            delivered = self._spool.deliver(self._write, limit=PREDICTIONS_AT_ONCE)
            waiting = self._spool.state().predictions if delivered is None else delivered
            self.is_near_end = waiting < PREDICTIONS_AT_ONCE
        except DATABASE_FAILURES as error:
            if self._circuit_breaker.failures != failures:
                return False
            logger.warning("the spool cannot be delivered", extra={"details": {"reason": str(error)}})
        if not delivered and not self._is_writable():  # the spool is empty, or another process delivers
            return False
        self._circuit_breaker.close(failures)
        metrics.DELIVERED_PREDICTIONS.inc(delivered or 0)
        return bool(delivered)

    def _write(self, entries: Sequence[LogEntry]) -> None:
        try:
            delivered = self._store().predictions.deliver(entries)
        except DATABASE_FAILURES as error:
            self._circuit_breaker.open(error)
            raise
        for repetition in delivered.repetitions:
            # Only ids: request ids of clients may identify patients.
            details = {
                "left_out": [*map(str, repetition.predictions)],
                "first": [*map(str, repetition.first)],
            }
            logger.warning("a request was answered by two machines", extra={"details": details})
            metrics.REPEATED_PREDICTIONS.inc(len(repetition.predictions))

    def _is_writable(self) -> bool:
        try:
            self._store().check_writable()
        except DATABASE_FAILURES as error:
            self._circuit_breaker.open(error)
            return False
        return True
