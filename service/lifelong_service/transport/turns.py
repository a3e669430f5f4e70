"""Turns of requests: the order in which a worker starts those that have arrived."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable

_AT_ONCE = 16
"""Requests with a token that start in one turn of the event loop."""


class Turns:
    """Starts a few requests in each turn of the event loop, so that a flood of them delays no other work for long.

    Clients take turns, and each client's connections. A connection has at most one request here: the next one of its
    pipeline comes after its answer, and so waits behind those of all other connections. Requests that are pipelined, or
    have no token and are no probe, let all others pass, but for one in each turn. Used in the event loop only.
    """

    def __init__(self) -> None:
        self._first = _Waiting()
        self._later = _Waiting()
        self._is_taken = False

    def take(self, client: str, connection: Hashable, start: Callable[[], None], *, is_later: bool) -> None:
        """Call `start` when its turn has come: at once if no other request has started in this turn of the loop.

        Args:
            client: name of the client.
            connection: its connection.
            start: starts the request.
            is_later: whether it lets those pass that are not.
        """
        if not self._is_taken:
            self._is_taken = True
            asyncio.get_running_loop().call_soon(self._go_on)
            start()
        else:
            (self._later if is_later else self._first).add(client, connection, start)

    def leave(self, client: str, connection: Hashable) -> None:
        """Drop the request of a closed connection, if it waits: it would take the turn of another one."""
        self._first.remove(client, connection)
        self._later.remove(client, connection)

    def _go_on(self) -> None:
        starting = [self._first.pop() for _ in range(min(_AT_ONCE, len(self._first)))]
        if self._later:
            starting.append(self._later.pop())
        self._is_taken = bool(starting)
        if starting:
            asyncio.get_running_loop().call_soon(self._go_on)
        for start in starting:
            start()


class _Waiting:
    """Requests in the order of their turns: the first of each client, then the second of each."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, OrderedDict[Hashable, Callable[[], None]]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, client: str, connection: Hashable, start: Callable[[], None]) -> None:
        self._clients.setdefault(client, OrderedDict())[connection] = start
        self._size += 1

    def pop(self) -> Callable[[], None]:
        client, requests = self._clients.popitem(last=False)
        _, start = requests.popitem(last=False)
        if requests:
            self._clients[client] = requests
        self._size -= 1
        return start

    def remove(self, client: str, connection: Hashable) -> None:
        requests = self._clients.get(client, {})
        if requests.pop(connection, None) is not None:
            self._size -= 1
            if not requests:
                del self._clients[client]
