"""Connection limits: above them, a worker keeps connections that wait for it, then those of clients with few.

A connection waits for its client (for the first bytes, the rest of a head or a body, the next request, or until an
answer is read), or it waits for the service: a request has arrived, and its answer is due. At the limit, one that waits
for its client is closed: the owner with the most such connections loses the one that has waited longest. So neither
half-open connections nor slow bodies can block others.
"""

import ipaddress
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

from lifelong_service.clients.addresses import network_of

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

NOTE_OWNER = "lifelong.note_owner"
"""Key of the scope of a request: a function that takes its `Owner`. Another server gives none."""
_PROBE_PART = 50
"""Part of all connections, one in so many, whose requests are answered only if they are probes."""
_TOKEN_WEIGHT = 0.25


class Owner(NamedTuple):
    """The client of a connection: the token of its latest request, else its address."""

    name: str
    weight: float = 1.0
    """what one connection counts"""

    @classmethod
    def token(cls, name: str) -> "Owner":
        """The owner of connections with this token, which make room last."""
        return cls(name, _TOKEN_WEIGHT)


class Connection(Protocol):
    """One connection of a client.

    Attributes:
        address: IP address of the client; "" for a client without one.
    """

    address: str

    def evict(self) -> None:
        """Close this connection, which waits for its client."""
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
        self._owners: dict[Connection, Owner] = {}
        self._waiting: dict[Owner, dict[Connection, None]] = {}  # those that have waited longest come first
        self._busy = 0

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: Connection) -> bool:
        """Add a new connection, which waits for its client; close others if there are too many.

        Returns:
            False: there is no room, because every other connection waits for the service. It is not counted.
        """
        network = network_of(connection.address)
        if self._counts[network] >= self._per_address and not self._is_proxy(connection.address):
            if not self._evict_of(network):
                return False
        elif len(self._open) >= self._maximum and not self._evict():
            return False
        self._open[connection] = network
        self._counts[network] += 1
        self._owners[connection] = Owner(network)
        self._busy += 1
        self.wait(connection)
        return True

    def own(self, connection: Connection, owner: Owner) -> None:
        """Note the client that sends the present request of a connection."""
        if connection not in self._open or self._owners[connection] == owner:
            return
        is_waiting = self._stop_waiting(connection)
        self._owners[connection] = owner
        if is_waiting:
            self.wait(connection)

    def wait(self, connection: Connection) -> None:
        """Mark a connection that waits for its client; it keeps its rank if it does already."""
        if connection in self._open and not self._is_waiting(connection):
            self._waiting.setdefault(self._owners[connection], {})[connection] = None
            self._busy -= 1

    def carry(self, connection: Connection, *, is_kept: bool = False) -> bool:
        """Mark a connection that waits for the service: it stays open until its request is answered.

        Args:
            connection: the connection.
            is_kept: its request is a probe, for which there is always room, or has a part of its answer.

        Returns:
            False: there is no room for it.
        """
        if not self._is_waiting(connection):
            return True
        if not is_kept and self._busy >= self._maximum - self._maximum // _PROBE_PART:
            return False
        self._stop_waiting(connection)
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection; an unknown one is ignored."""
        network = self._open.get(connection)
        if network is None:
            return
        self._stop_waiting(connection)
        self._busy -= 1
        del self._open[connection], self._owners[connection]
        self._counts[network] -= 1
        if not self._counts[network]:
            del self._counts[network]

    def _is_waiting(self, connection: Connection) -> bool:
        owner = self._owners.get(connection)
        return owner is not None and connection in self._waiting.get(owner, ())

    def _stop_waiting(self, connection: Connection) -> bool:
        """Return whether the connection has waited for its client."""
        if not self._is_waiting(connection):
            return False
        waiting = self._waiting[self._owners[connection]]
        del waiting[connection]
        if not waiting:
            del self._waiting[self._owners[connection]]
        self._busy += 1
        return True

    def _evict(self) -> bool:
        """Close a connection of the owner with the most that wait for their client; return whether there was one."""
        if not self._waiting:
            return False
        owner = max(self._waiting, key=lambda owner: len(self._waiting[owner]) * owner.weight)
        return self._close(next(iter(self._waiting[owner])))

    def _evict_of(self, network: str) -> bool:
        """Close a connection from this network, one with a token last; return whether there was one."""
        if waiting := self._waiting.get(Owner(network)):
            return self._close(next(iter(waiting)))
        waiting_ones = chain.from_iterable(self._waiting.values())
        connection = next((other for other in waiting_ones if self._open[other] == network), None)
        return connection is not None and self._close(connection)

    def _close(self, connection: Connection) -> bool:
        self.remove(connection)
        connection.evict()
        return True

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies or not address:
            return False
        parsed = ipaddress.ip_address(address)
        return any(parsed in network for network in self._proxies)
