"""What a worker knows of its database: whether it answers."""

import logging
from collections.abc import Callable

from lifelong_core.errors import LifelongError
from lifelong_service import metrics

logger = logging.getLogger(__name__)


class CircuitBreaker:
    """Begins with the first failure and ends when the database has answered to somebody who asked after the last one.

    Attributes:
        reason: why the database is not asked; None while it answers.
        failures: how often it has failed this worker.

    Args:
        is_stuck: whether a call to the database still hangs, so that no other can be made.
    """

    def __init__(self, is_stuck: Callable[[], bool]) -> None:
        self._is_stuck = is_stuck
        self.reason: str | None = None
        self.failures = 0

    def begin(self, error: LifelongError) -> None:
        """The database has failed."""
        if self.reason is None:
            logger.warning("the database is away", extra={"details": {"reason": str(error)}})
        self.failures += 1
        self.reason = str(error)
        metrics.LOG_DEGRADED.set(1)

    def end(self, failures: int) -> None:
        """The database has answered to a question that was asked when it had failed so many times."""
        if self.reason is not None and failures == self.failures and not self._is_stuck():
            self.reason = None
            logger.info("the database answers again")
