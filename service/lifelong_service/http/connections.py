"""Connection limits: above them, a worker keeps connections with a request, then the newest.

A connection is idle (waits for the first bytes, the rest of a request head, or the next request) or carries a request.
At the limit, the one that is idle longest is closed, so that half-open connections cannot block others.
"""

import ipaddress
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Connection(Protocol):
    """One connection of a client.

    Attributes:
        address: IP address of the client; "" for a client without one.
    """

    address: str

    def evict(self) -> None:
        """Close this connection, which carries no request."""
        ...


class Connections:
    """The open connections of one worker.

    Args:
        maximum: largest number of connections.
        per_address: connections from one address.
        proxies: networks to which `per_address` does not apply.
    """

    def __init__(self, *, maximum: int, per_address: int, proxies: Sequence[Network] = ()) -> None:
        self._maximum = maximum
        self._per_address = per_address
        self._proxies = proxies
        self._counts: Counter[str] = Counter()
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}  # those that have waited longest come first

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: Connection) -> bool:
        """Add a new connection as idle; close others if there are too many.

        Returns:
            False: there is no room, because every other connection carries a request. It is not counted.
        """
        address = connection.address
        if self._counts[address] >= self._per_address and not self._is_proxy(address):
            if not self._evict(address):
                return False
        elif len(self._open) >= self._maximum and not self._evict():
            return False
        self._open.add(connection)
        self._counts[address] += 1
        self._waiting[connection] = None
        return True

    def wait(self, connection: Connection) -> None:
        """Mark a connection as idle: its request has been answered."""
        if connection in self._open:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def carry(self, connection: Connection) -> None:
        """Mark a connection as busy: it is kept until its request is answered."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection; an unknown one is ignored."""
        self._waiting.pop(connection, None)
        if connection not in self._open:
            return
        self._open.remove(connection)
        self._counts[connection.address] -= 1
        if not self._counts[connection.address]:
            del self._counts[connection.address]

    def _evict(self, address: str | None = None) -> bool:
        """Close the connection that is idle longest, of one address or of all; return whether there was one."""
        for connection in self._waiting:
            if address is None or connection.address == address:
                self.remove(connection)
                connection.evict()
                return True
        return False

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies or not address:
            return False
        parsed = ipaddress.ip_address(address)
        return any(parsed in network for network in self._proxies)
