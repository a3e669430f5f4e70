"""The thread that brings what waits in the spool to the database, and finds out when the database answers again."""

import logging
import threading
from collections.abc import Callable, Sequence

from lifelong_core.errors import ConfigurationError, UnavailableError
from lifelong_core.store import Store
from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.spool import Spool
from lifelong_service import metrics
from lifelong_service.prediction.circuit_breaker import CircuitBreaker

logger = logging.getLogger(__name__)

SHORTEST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 1.0
"""Between two attempts the pause grows from the one to the other while the database is silent."""
PREDICTIONS_AT_ONCE = 1000
CLOSING_SECONDS = 0.3
"""A thread that waits for a silent database does not end; what it has not delivered by then stays in the spool."""
_AWAY = (UnavailableError, ConfigurationError)


class DeliveryThread:
    """Every worker has one; whichever comes first delivers, the others only ask whether the database answers.

    Attributes:
        is_near_end: whether one more delivery may leave nothing behind, if nothing is added.

    Args:
        spool: of this machine.
        store: the open store; raises UnavailableError while there is none.
        outage: is begun and ended here.
        has_backlog: whether anything waits in the spool.
    """

    def __init__(
        self,
        spool: Spool,
        store: Callable[[], Store],
        outage: CircuitBreaker,
        *,
        has_backlog: Callable[[], bool],
    ) -> None:
        self._spool = spool
        self._store = store
        self._outage = outage
        self._has_backlog = has_backlog
        self.is_near_end = False
        self._needed = threading.Event()
        self._closing = threading.Event()
        self._pause = SHORTEST_PAUSE_SECONDS
        # A daemon: a call that never ends must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="spool-delivery", daemon=True)

    def start(self) -> None:
        """Begin with what an earlier process left."""
        self._needed.set()
        self._thread.start()

    def wake(self) -> None:
        """There is something to deliver, or the database has failed. Any thread may call this."""
        self._needed.set()

    def close(self) -> bool:
        """Deliver nothing more; says whether the thread has ended."""
        self._closing.set()
        self._needed.set()
        if self._thread.ident is not None:
            self._thread.join(CLOSING_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                is_needed = self._outage.reason is not None or self._has_backlog()
                metrics.LOG_DEGRADED.set(is_needed)
                if not is_needed:
                    # Not for ever: another process may leave something behind.
                    self._needed.wait(LONGEST_PAUSE_SECONDS)
                    self._needed.clear()
                elif self._step():
                    self._pause = SHORTEST_PAUSE_SECONDS
                else:
                    self._closing.wait(self._pause)
                    self._pause = min(1.5 * self._pause, LONGEST_PAUSE_SECONDS)
            except Exception:  # the thread must outlive any fault: what waits would wait for ever
                logger.exception("the spool cannot be delivered")
                self._closing.wait(LONGEST_PAUSE_SECONDS)

    def _step(self) -> bool:
        """Deliver some, or only ask the database; whether it makes sense to go on at once."""
        failures = self._outage.failures
        delivered = None
        try:
            delivered = self._spool.deliver(self._write, limit=PREDICTIONS_AT_ONCE)
            waiting = self._spool.state().predictions if delivered is None else delivered
            self.is_near_end = waiting < PREDICTIONS_AT_ONCE
        except _AWAY as error:
            if self._outage.failures != failures:
                return False
            logger.warning("the spool cannot be delivered", extra={"details": {"reason": str(error)}})
        if not delivered and not self._is_writable():  # nothing waits any longer, or another process delivers
            return False
        self._outage.end(failures)
        metrics.DELIVERED_PREDICTIONS.inc(delivered or 0)
        return bool(delivered)

    def _write(self, entries: Sequence[LogEntry]) -> None:
        try:
            delivered = self._store().predictions.deliver(entries)
        except _AWAY as error:
            self._outage.begin(error)
            raise
        for one in delivered.repetitions:
            # Only ids: what clients name their requests by may say something of patients.
            details = {"left_out": [*map(str, one.predictions)], "first": [*map(str, one.first)]}
            logger.warning("a request was answered by two machines", extra={"details": details})
            metrics.REPEATED_PREDICTIONS.inc(len(one.predictions))

    def _is_writable(self) -> bool:
        try:
            self._store().check_writable()
        except _AWAY as error:
            self._outage.begin(error)
            return False
        return True
