"""Connection limits: above them, a worker keeps connections with a request, then the newest.

A connection is idle (waits for the first bytes, the rest of a request head, or the next request) or carries a request.
At the limit, the one that is idle longest is closed, so that half-open connections cannot block others.
"""

import ipaddress
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from lifelong_service.http.client_addresses import network_of

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
        per_address: connections from one address; for IPv6 from the network of one customer.
        proxies: networks to which `per_address` does not apply.
    """

    def __init__(self, *, maximum: int, per_address: int, proxies: Sequence[Network] = ()) -> None:
        self._maximum = maximum
        self._per_address = per_address
        self._proxies = proxies
        self._counts: Counter[str] = Counter()
        self._open: dict[Connection, str] = {}
        """with the network of its client"""
        self._waiting: dict[Connection, None] = {}  # those that have waited longest come first

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: Connection) -> bool:
        """Add a new connection as idle; close others if there are too many.

        Returns:
            False: there is no room, because every other connection carries a request. It is not counted.
        """
        network = network_of(connection.address)
        if self._counts[network] >= self._per_address and not self._is_proxy(connection.address):
            if not self._evict(network):
                return False
        elif len(self._open) >= self._maximum and not self._evict():
            return False
        self._open[connection] = network
        self._counts[network] += 1
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
        network = self._open.pop(connection, None)
        if network is None:
            return
        self._counts[network] -= 1
        if not self._counts[network]:
            del self._counts[network]

    def _evict(self, network: str | None = None) -> bool:
        """Close the connection that is idle longest, of one network or of all; return whether there was one."""
        for connection in self._waiting:
            if network is None or self._open[connection] == network:
                self.remove(connection)
                connection.evict()
                return True
        return False

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies or not address:
            return False
        parsed = ipaddress.ip_address(address)
        return any(parsed in network for network in self._proxies)
