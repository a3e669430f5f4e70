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


class Tidier:
    """Waits for the end of large bodies; one for each process, used in its event loop.

    Args:
        executor: in which the memory is given back.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._is_due = False

    def note(self, received: int, *, is_parsed: bool) -> None:
        """Tell of the end of a request.

        Args:
            received: bytes of its body.
            is_parsed: whether they became Python objects.
        """
        if self._is_due or received <= (LARGE_PARSED_BODY if is_parsed else LARGE_BODY):
            return
        self._is_due = True
        asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._tidy)

    def _tidy(self) -> None:
        self._is_due = False
        self._executor.submit(give_back_free_memory)
