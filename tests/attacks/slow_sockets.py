"""Connections that send little and slowly, from several addresses, in a process of their own."""

import multiprocessing
import resource
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from typing import cast

TURN_SECONDS = 0.1
TURNS = 10
"""A connection sends in one of so many turns."""
OPENED = 100
"""Largest number of connections that are opened in a turn: more would be a flood of requests."""


@dataclass(frozen=True)
class SlowSockets:
    """Connections of an attacker, who opens those again that the service closes.

    Attributes:
        port: port of the loopback address.
        starts: first bytes of a connection, and what it sends every second; connections take them in turn.
        number: of connections.
        addresses: their own addresses, in turn.
    """

    port: int
    starts: Sequence[tuple[bytes, bytes]]
    number: int
    addresses: Sequence[str]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Keep the connections open until the block ends."""
        process = multiprocessing.get_context("spawn").Process(target=_attack, args=(self,), daemon=True)
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()


def _attack(plan: SlowSockets) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened: dict[socket.socket, bytes] = {}
    starts, addresses = cycle(plan.starts), cycle(plan.addresses)
    with selectors.DefaultSelector() as selector:
        for turn in count():
            tick = time.monotonic() + TURN_SECONDS
            for _ in range(min(plan.number - len(opened), OPENED)):
                start, drip = next(starts)
                if (connection := _connected(plan.port, start, next(addresses))) is not None:
                    opened[connection] = drip
                    selector.register(connection, selectors.EVENT_READ)
            for connection, drip in list(opened.items()):
                if connection.fileno() % TURNS != turn % TURNS:
                    continue
                try:
                    connection.send(drip)
                except BlockingIOError:
                    pass
                except OSError:
                    _forget(connection, selector, opened)
            while (left := tick - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    _read(cast("socket.socket", key.fileobj), selector, opened)


def _connected(port: int, start: bytes, address: str) -> socket.socket | None:
    try:
        connection = socket.create_connection(("127.0.0.1", port), timeout=0.2, source_address=(address, 0))
    except OSError:
        return None
    try:
        connection.sendall(start)
    except OSError:
        connection.close()
        return None
    connection.setblocking(False)
    return connection


def _read(
    connection: socket.socket, selector: selectors.BaseSelector, opened: dict[socket.socket, bytes]
) -> None:
    try:
        if connection.recv(65536):
            return
    except BlockingIOError:
        return
    except OSError:
        pass
    _forget(connection, selector, opened)


def _forget(
    connection: socket.socket, selector: selectors.BaseSelector, opened: dict[socket.socket, bytes]
) -> None:
    selector.unregister(connection)
    del opened[connection]
    connection.close()
