"""A cheap load generator: one thread, keep-alive connections, prepared requests."""

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field


@dataclass
class Measured:
    """What a time of load came to."""

    seconds: float
    latencies: list[float] = field(default_factory=list[float])
    """seconds, from when a request was due to be sent"""
    faults: int = 0
    """answers other than 200"""

    @property
    def per_second(self) -> float:
        """Requests that were answered."""
        return len(self.latencies) / self.seconds


class Generator:
    """Sends POST requests to one path of a service on this machine.

    Args:
        port: of the service.
        path: with the query.
        headers: of every request.
        body: makes the next body.
        connections: how many requests may be under way at once.
    """

    def __init__(
        self, port: int, path: str, headers: dict[str, str], body: Callable[[], bytes], *, connections: int
    ) -> None:
        named = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{named}Content-Length: ".encode()
        self._body = body
        self._port = port
        self._count = connections

    def run(self, seconds: float, *, rate: float | None = None) -> Measured:
        """Load for so long: `rate` requests per second, or on each connection the next as soon as one is answered."""
        with ExitStack() as stack:
            # Anew for each run: the service closes those that were silent for a few seconds.
            connections = [stack.enter_context(_connect(self._port)) for _ in range(self._count)]
            selector = stack.enter_context(selectors.DefaultSelector())
            for connection in connections:
                selector.register(connection, selectors.EVENT_READ)
            return self._run(selector, deque(connections), seconds, rate)

    def _run(
        self,
        selector: selectors.BaseSelector,
        idle: deque[socket.socket],
        seconds: float,
        rate: float | None,
    ) -> Measured:
        measured = Measured(seconds)
        under_way: dict[socket.socket, float] = {}
        began = time.perf_counter()
        end, next_at = began + seconds, began
        while (now := time.perf_counter()) < end or under_way:
            while idle and now < end and (rate is None or next_at <= now):
                connection = idle.popleft()
                under_way[connection] = now if rate is None else next_at
                next_at += 1 / rate if rate else 0
                self._send(connection)
            wait = 0.5 if rate is None or now >= end or not idle else max(0.0, next_at - now)
            for key, _ in selector.select(wait):
                status = _receive(key.fileobj)  # type: ignore[arg-type]
                measured.latencies.append(time.perf_counter() - under_way.pop(key.fileobj))  # type: ignore[arg-type]
                measured.faults += status != b"200"
                idle.append(key.fileobj)  # type: ignore[arg-type]
        return measured

    def _send(self, connection: socket.socket) -> None:
        body = self._body()
        connection.sendall(self._head + str(len(body)).encode() + b"\r\n\r\n" + body)


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _receive(connection: socket.socket) -> bytes:
    """Read one whole answer; its status."""
    data = _read_some(connection)
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += _read_some(connection)
    head = data[:end].lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    while len(data) < end + 4 + length:
        data += _read_some(connection)
    return head[9:12]


def _read_some(connection: socket.socket) -> bytes:
    if not (some := connection.recv(65536)):
        raise ConnectionError("the service closed the connection before its answer was complete.")
    return some
