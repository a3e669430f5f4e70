"""After large bodies, a worker gives the memory back that they took: the allocator would keep it."""

import asyncio
from concurrent.futures import Executor
from typing import Final

from lifelong_core.memory import give_back_free_memory

LARGE_BODY: Final = 4_000_000
"""Bytes of a body after which it is worth it."""
LARGE_PARSED_BODY: Final = 100_000
"""The same where the body becomes Python objects."""
PAUSE_SECONDS: Final = 0.5
"""From the first large body to the moment at which all that came by then are tidied up together."""


class MemoryRelease:
    """Waits for the end of large bodies; one for each process, used in its event loop.

    Args:
        executor: in which the memory is given back.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._due_in: asyncio.AbstractEventLoop | None = None

    def note(self, received: int, *, is_parsed: bool) -> None:
        """Tell of the end of a request.

        Args:
            received: bytes of its body.
            is_parsed: whether they became Python objects.
        """
        loop = asyncio.get_running_loop()
        # A loop that was closed meanwhile calls nothing any more.
        if self._due_in is loop or received <= (LARGE_PARSED_BODY if is_parsed else LARGE_BODY):
            return
        self._due_in = loop
        loop.call_later(PAUSE_SECONDS, self._tidy)

    def _tidy(self) -> None:
        self._due_in = None
        self._executor.submit(give_back_free_memory)
