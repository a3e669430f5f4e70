"""The circuit breaker of the database: while it is open, requests do not wait for the database."""

import logging
from collections.abc import Callable

from lifelong_core.values.errors import LifelongError
from lifelong_service import metrics

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
