"""Questions to the database that a request waits for: a slow database or a flood of them holds up nobody else."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from lifelong_core.deadline import DeadlineThread
from lifelong_core.errors import UnavailableError

Result = TypeVar("Result")

PATIENCE_SECONDS = 1.0
"""How long the database may take for an answer."""
MOST_WAITING = 32
"""Questions that wait for their turn; more are a flood."""


class Lookups:
    """Asks in a thread of its own, one question at a time. Used in the event loop only.

    Args:
        name: of the thread.
        what: the things that are looked up, in words: "unknown tokens".
        field: of the request that is at fault where there are too many.
    """

    def __init__(self, name: str, what: str, *, field: str) -> None:
        self._what = what
        self._field = field
        self._thread = DeadlineThread(name)
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._waiting = 0

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    async def ask(self, question: Callable[[], Result]) -> Result:
        """What the question returns or raises.

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
