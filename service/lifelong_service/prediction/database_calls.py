"""Calls of the micro-batcher to the database: with a time limit per micro-batch, behind a circuit breaker."""

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from lifelong_core.runtime.deadline import DeadlineThread
from lifelong_core.store import Store
from lifelong_core.values.errors import ConfigurationError, LifelongError, UnavailableError
from lifelong_service import metrics

Result = TypeVar("Result")
DATABASE_FAILURES: Final = (UnavailableError, ConfigurationError)
"""Errors of an outage, including a database file that becomes read-only or unreadable at run time."""
logger = logging.getLogger(__name__)


class CircuitBreaker:
    """Opens with the first failure and closes when a call that began after the last failure has succeeded.

    Attributes:
        reason: message of the latest failure; None while the breaker is closed.
        failures: number of failures so far.

    Args:
        is_stuck: whether a call to the database hangs, so that no other one can begin.
    """

    def __init__(self, is_stuck: Callable[[], bool]) -> None:
        self._is_stuck = is_stuck
        self.reason: str | None = None
        self.failures = 0

    def open(self, error: LifelongError) -> None:
        """Record a failure of the database."""
        if self.reason is None:
            logger.warning("the database is away", extra={"details": {"reason": str(error)}})
        self.failures += 1
        self.reason = str(error)
        metrics.LOG_DEGRADED.set(1)

    def close(self, failures: int) -> None:
        """Record the success of a call that began after this number of failures."""
        if self.reason is not None and failures == self.failures and not self._is_stuck():
            self.reason = None
            logger.info("the database answers again")


class DatabaseCalls:
    """Calls the database within the time limit of a micro-batch; used in the batcher's thread.

    Attributes:
        circuit_breaker: open while the database does not answer.

    Args:
        store: the open store; raises UnavailableError while there is none.
        timeout_seconds: time limit of all calls of one micro-batch together.
        on_failure: called after each reported failure.
    """

    def __init__(
        self, store: Callable[[], Store], *, timeout_seconds: float, on_failure: Callable[[], None]
    ) -> None:
        self._store = store
        self._timeout = timeout_seconds
        self._on_failure = on_failure
        self._left = 0.0
        self._thread = DeadlineThread("prediction-log")
        self.circuit_breaker = CircuitBreaker(self._is_stuck)

    def start(self) -> None:
        """Start the thread that makes the calls."""
        self._thread.start()

    def hurry(self) -> None:
        """Shorten all waits: the process is about to end. Any thread may call this."""
        self._thread.hurry()

    def close(self) -> None:
        """End the thread after its present call."""
        self._thread.close()

    @property
    def outage(self) -> str | None:
        """Reason why the database is not called; None while the circuit breaker is closed. Any thread may call this."""
        return self.circuit_breaker.reason

    def begin_batch(self) -> None:
        """Start the time limit of a new micro-batch."""
        self._left = self._timeout

    def call(self, question: Callable[[Store], Result]) -> Result:
        """Return the result of a query of the store.

        Raises:
            UnavailableError: the database does not answer within the remaining time of the micro-batch.
            LifelongError: as raised by the query.
        """
        if self._left <= 0:
            raise UnavailableError(
                f"the database is slow: a micro-batch waited {self._timeout:.3g} s for it."
            )
        began = time.monotonic()
        try:
            return self._thread.call(lambda: question(self._store()), self._left)
        finally:
            self._left -= time.monotonic() - began

    def report_failure(self, error: LifelongError) -> None:
        """Open the circuit breaker: no call until the spool delivery has reached the database."""
        self.circuit_breaker.open(error)
        self._on_failure()

    def _is_stuck(self) -> bool:
        return self._thread.is_stuck
