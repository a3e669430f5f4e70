"""Look-ups in the database for requests: a slow database or a flood of look-ups delays no other request."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from lifelong_core.runtime.deadline import DeadlineThread
from lifelong_core.values.errors import UnavailableError
from lifelong_service.http.client_addresses import network_of
from lifelong_service.limits.sharing import FairSlots

Result = TypeVar("Result")

PATIENCE_SECONDS = 1.0
"""Time limit of one look-up."""
MOST_WAITING = 32
"""Largest number of waiting look-ups; one more gets 503. A single client fills half of them."""


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
        self._waiting = FairSlots(MOST_WAITING)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    async def ask(self, question: Callable[[], Result], *, client: str = "") -> Result:
        """Return the result of the question.

        Args:
            question: asks the database.
            client: address of the client; one of many gets a share of the waiting look-ups.

        Raises:
            UnavailableError: the database does not answer in time, or too many questions wait.
        """
        network = network_of(client)
        if not self._waiting.has_room(network):
            raise UnavailableError(
                f"too many {self._what} are being looked up.",
                field=self._field,
                hint="Try again in a second.",
            )
        with self._waiting.hold(network):
            return await anyio.to_thread.run_sync(
                lambda: self._thread.call(question, PATIENCE_SECONDS), limiter=self._one_at_a_time
            )
