"""Requests at a fixed rate, independent of the answers (open loop)."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

BROKEN = 0
"""Status of a request whose connection broke before the answer."""
OK = 200
PATIENCE_SECONDS = 20.0
REFUSED_PAUSE_SECONDS = 0.1
"""Pause of a client after a refused request."""


@dataclass(frozen=True)
class Sent:
    """One request: its status, and the seconds from sending to the last byte of the answer."""

    status: int
    seconds: float


def statuses(sent: Sequence[Sent]) -> dict[int, int]:
    """Number of requests by status."""
    return {status: sum(one.status == status for one in sent) for status in {one.status for one in sent}}


def send_at_rate(port: int, request: bytes, *, rate: float, seconds: float) -> list[Sent]:
    """Send the same request at a fixed rate and wait for all answers.

    Args:
        port: port of the loopback address.
        request: head and body.
        rate: requests per second.
        seconds: duration of sending.
    """

    async def all_of_them() -> list[Sent]:
        connections = _Connections(port)
        began = asyncio.get_running_loop().time()
        tasks: list[asyncio.Task[Sent]] = []
        for index in range(int(rate * seconds)):
            await asyncio.sleep(began + index / rate - asyncio.get_running_loop().time())
            tasks.append(asyncio.create_task(connections.send(request)))
        sent = list(await asyncio.gather(*tasks))
        connections.close()
        return sent

    return asyncio.run(all_of_them())


def send_in_turn(
    port: int, request: bytes, *, clients: int, seconds: float, address: str = "127.0.0.1"
) -> list[Sent]:
    """Send the same request repeatedly, each client after its answer: this measures the capacity of the service."""

    async def client(connections: "_Connections", end: float) -> list[Sent]:
        found: list[Sent] = []
        while time.monotonic() < end:
            found.append(await connections.send(request))
            if found[-1].status != OK:
                await asyncio.sleep(REFUSED_PAUSE_SECONDS)
        return found

    async def all_of_them() -> list[Sent]:
        connections = _Connections(port, address)
        end = time.monotonic() + seconds
        several = await asyncio.gather(*(client(connections, end) for _ in range(clients)))
        connections.close()
        return [one for some in several for one in some]

    return asyncio.run(all_of_them())


class _Connections:
    """Keep-alive connections to one port: idle ones are reused before a new one is opened."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self._port = port
        self._address = address
        self._idle: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = deque()

    async def send(self, request: bytes) -> Sent:
        """Send one request and read its answer."""
        began = time.monotonic()
        status = BROKEN
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                status = await self._exchange(request)
        return Sent(status, time.monotonic() - began)

    async def _exchange(self, request: bytes) -> int:
        # The one that is idle longest, so that all connections, and so both workers, are used.
        idle = self._idle.popleft() if self._idle else None
        reader, writer = idle or await asyncio.open_connection(
            "127.0.0.1", self._port, local_addr=(self._address, 0)
        )
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
        except BaseException:
            writer.close()
            raise
        if b"connection: close" in head:
            writer.close()
        else:
            self._idle.append((reader, writer))
        return int(head.split(None, 2)[1])

    def close(self) -> None:
        """Close idle connections."""
        for _, writer in self._idle:
            writer.close()
