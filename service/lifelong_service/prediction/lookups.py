"""Look-ups in the database for requests: a slow database or a flood of look-ups delays no other request."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from lifelong_core.errors import UnavailableError
from lifelong_core.runtime.deadline import DeadlineThread

Result = TypeVar("Result")

PATIENCE_SECONDS = 1.0
"""Time limit of one look-up."""
MOST_WAITING = 32
"""Largest number of waiting look-ups; one more gets 503."""


class Lookups:
    """Makes look-ups in a separate thread, one at a time. Used in the event loop only.

    Args:
        name: name of the thread.
        what: object of the look-ups in error messages, e.g. "unknown tokens".
        field: field of the request in error messages.
    """

    def __init__(self, name: str, what: str, *, field: str) -> None:
        self._what = what
        self._field = field
        self._thread = DeadlineThread(name)
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._waiting = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    async def ask(self, question: Callable[[], Result]) -> Result:
        """Return the result of the question.

        Raises:
            UnavailableError: the database does not answer in time, or too many questions wait.
        """
        if self._waiting >= MOST_WAITING:
            raise UnavailableError(
                f"too many {self._what} are being looked up.",
                field=self._field,
                hint="Try again in a second.",
            )
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(
                lambda: self._thread.call(question, PATIENCE_SECONDS), limiter=self._one_at_a_time
            )
        finally:
            self._waiting -= 1
