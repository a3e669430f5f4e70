"""Turns of requests: the order in which a worker starts those that have arrived."""

import asyncio
from collections import deque
from collections.abc import Callable

_AT_ONCE = 16
"""Requests with a token that start in one turn of the event loop."""


class Turns:
    """Starts a few requests in each turn of the event loop, so that a flood of them delays no other work for long.

    A connection has at most one request here: the next one of its pipeline comes after its answer, and so waits behind
    those of all other connections. Requests that are pipelined or have no token let all others pass, but for one in
    each turn. Used in the event loop only.
    """

    def __init__(self) -> None:
        self._first: deque[Callable[[], None]] = deque()
        self._later: deque[Callable[[], None]] = deque()
        self._is_taken = False

    def take(self, start: Callable[[], None], *, is_later: bool) -> None:
        """Call `start` when its turn has come: at once if no other request has started in this turn of the loop.

        Args:
            start: starts a request.
            is_later: whether it lets those pass that are not.
        """
        if not self._is_taken:
            self._is_taken = True
            asyncio.get_running_loop().call_soon(self._go_on)
            start()
        else:
            (self._later if is_later else self._first).append(start)

    def _go_on(self) -> None:
        starting = [self._first.popleft() for _ in range(min(_AT_ONCE, len(self._first)))]
        if self._later:
            starting.append(self._later.popleft())
        self._is_taken = bool(starting)
        if starting:
            asyncio.get_running_loop().call_soon(self._go_on)
        for start in starting:
            start()
