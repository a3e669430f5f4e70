"""Connections that are closed when there are too many."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lifelong_service.transport.connections import Connections, Owner

PROXY = ipaddress.ip_network("10.0.0.0/8")


class Client:
    """A connection that remembers whether it was closed."""

    def __init__(self, address: str = "192.0.2.1") -> None:
        self.address = address
        self.is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True


def opened(connections: Connections, *addresses: str) -> list[Client]:
    clients = [Client(address) for address in addresses]
    for client in clients:
        assert connections.admit(client)
    return clients


def test_the_one_that_has_waited_longest_makes_room() -> None:
    connections = Connections(maximum=3, per_address=9)
    first, second, third = opened(connections, "a", "b", "c")
    connections.carry(first)
    connections.wait(first)  # it has been used: now it has waited for the shortest time
    opened(connections, "d")
    assert [client.is_evicted for client in (first, second, third)] == [False, True, False]
    assert len(connections) == 3


def test_the_client_with_the_most_makes_room() -> None:
    connections = Connections(maximum=4, per_address=9)
    idle, first, second, third = opened(connections, "a", "b", "b", "b")
    connections.carry(first)
    opened(connections, "c")
    assert [client.is_evicted for client in (idle, first, second, third)] == [False, False, True, False]


def test_a_token_with_many_addresses_is_one_client_and_makes_room_last() -> None:
    connections = Connections(maximum=13, per_address=9)
    clients = opened(connections, *(f"token {number}" for number in range(10)), "a", "a", "a")
    for client in clients[:10]:
        connections.own(client, Owner.token("one"))
    opened(connections, "b", "c", "d")
    evicted = [number for number, client in enumerate(clients) if client.is_evicted]
    assert evicted == [0, 1, 10], (
        "first one of three of an address, then of the token, of which four count as one"
    )


def test_there_is_room_for_probes_while_requests_fill_the_worker() -> None:
    connections = Connections(maximum=100, per_address=100)
    clients = opened(connections, *(f"a{number}" for number in range(100)))
    assert [connections.carry(client) for client in clients] == [True] * 98 + [False] * 2
    assert connections.carry(clients[-1], is_kept=True)
    opened(connections, "b")
    assert clients[98].is_evicted


def test_an_address_makes_room_for_itself_only() -> None:
    connections = Connections(maximum=9, per_address=2)
    other, first, second = opened(connections, "other", "busy", "busy")
    opened(connections, "busy")
    assert [client.is_evicted for client in (other, first, second)] == [False, True, False]


@pytest.mark.parametrize(("maximum", "per_address"), [(2, 9), (9, 2)])
def test_what_carries_a_request_keeps_its_place(maximum: int, per_address: int) -> None:
    connections = Connections(maximum=maximum, per_address=per_address)
    for client in opened(connections, "a", "a"):
        connections.carry(client)
    refused = Client("a")
    assert not connections.admit(refused)
    connections.remove(refused)  # as it is closed
    connections.wait(refused)
    assert len(connections) == 2


def test_a_proxy_has_only_the_common_limit() -> None:
    connections = Connections(maximum=4, per_address=1, proxies=[PROXY])
    clients = opened(connections, "10.1.2.3", "10.1.2.3", "10.1.2.3", "10.1.2.3")
    opened(connections, "10.1.2.3")
    assert [client.is_evicted for client in clients] == [True, False, False, False]


def test_the_addresses_of_one_ipv6_customer_are_counted_together() -> None:
    connections = Connections(maximum=9, per_address=2, proxies=[PROXY])
    other, first, second = opened(connections, "2001:db8:0:8::1", "2001:db8:0:7::1", "2001:db8:0:7::2")
    opened(connections, "2001:db8:0:7::3")
    assert [client.is_evicted for client in (other, first, second)] == [False, True, False]


def test_clients_without_an_address_are_counted_together() -> None:
    connections = Connections(maximum=9, per_address=1, proxies=[PROXY])
    (first,) = opened(connections, "")
    opened(connections, "")
    assert first.is_evicted


@pytest.mark.hypothesis
@given(some.lists(some.tuples(some.sampled_from(["admit", "carry", "wait", "remove"]), some.integers(0, 7))))
def test_no_limit_is_ever_exceeded(steps: list[tuple[str, int]]) -> None:
    connections = Connections(maximum=4, per_address=2)
    clients: list[Client] = []
    kept: set[Client] = set()
    for action, number in steps:
        if action == "admit":
            client = Client(f"a{number % 3}")
            clients.append(client)
            if connections.admit(client):
                kept.add(client)
        elif clients:
            client = clients[number % len(clients)]
            if action == "remove" or client in kept:
                getattr(connections, action)(client)
            if action == "remove":
                kept.discard(client)
        kept = {client for client in kept if not client.is_evicted}
        assert len(connections) == len(kept) <= 4
        for address in ("a0", "a1", "a2"):
            assert sum(client.address == address for client in kept) <= 2
