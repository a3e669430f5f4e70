"""Writes of an answer, on a real connection whose writes are counted."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from lifelong_service.transport.joined_writes import LARGE_BYTES, JoinedWrites

LARGE = bytes(LARGE_BYTES + 1)


class Counting:
    """A transport that keeps what is written at once."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.writes: list[bytes] = []
        self._transport = transport

    def write(self, data: bytes) -> None:
        self.writes.append(bytes(data))
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


async def exchange(act: Callable[[JoinedWrites], None]) -> tuple[list[bytes], bytes]:
    """What the act writes at once each, and what a client receives until the connection is closed."""
    accepted = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    kept = await accepted
    counting = Counting(kept.transport)
    transport = JoinedWrites(cast("asyncio.Transport", counting), asyncio.get_running_loop())
    act(transport)
    await asyncio.sleep(0)
    transport.close()
    received = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    server.close()
    return counting.writes, received


def twice(transport: JoinedWrites) -> None:
    transport.write(b"head")
    transport.write(b"body")


def once(transport: JoinedWrites) -> None:
    transport.write(b"head")


def once_and_end(transport: JoinedWrites) -> None:
    transport.write(b"head")
    transport.write_eof()


def once_and_close(transport: JoinedWrites) -> None:
    transport.write(b"head")
    transport.close()


def answer_after_close(transport: JoinedWrites) -> None:
    once_and_close(transport)
    twice(transport)


def lines(transport: JoinedWrites) -> None:
    transport.write(b"head")
    transport.writelines([b"bo", b"dy"])


def answer_and_begin(transport: JoinedWrites) -> None:
    for piece in (b"head", b"body", b"next"):
        transport.write(piece)


def large(transport: JoinedWrites) -> None:
    transport.write(b"head")
    transport.write(LARGE)


@pytest.mark.parametrize(
    ("act", "writes"),
    [
        (twice, [b"headbody"]),
        (large, [b"head", LARGE]),
        (once, [b"head"]),
        (once_and_end, [b"head"]),
        (once_and_close, [b"head"]),
        (answer_after_close, [b"head"]),
        (lines, [b"headbody"]),
        (answer_and_begin, [b"headbody", b"next"]),
    ],
)
def test_head_and_body_are_one_write_and_nothing_is_lost(
    act: Callable[[JoinedWrites], None], writes: list[bytes]
) -> None:
    assert asyncio.run(exchange(act)) == (writes, b"".join(writes))


def test_what_is_held_counts_as_not_read() -> None:
    def act(transport: JoinedWrites) -> None:
        before = transport.get_write_buffer_size()
        transport.write(b"head")
        sizes.append(transport.get_write_buffer_size() - before)

    sizes: list[int] = []
    asyncio.run(exchange(act))
    assert sizes == [4]


def test_everything_else_is_that_of_the_connection() -> None:
    def act(transport: JoinedWrites) -> None:
        assert transport.is_reading()
        transport.pause_reading()
        assert not transport.is_reading()
        assert transport.get_protocol() is not None
        assert transport.can_write_eof()
        assert transport.get_write_buffer_limits()[1] > 0
        transport.write(b"held")
        transport.abort()
        assert transport.is_closing()

    assert asyncio.run(exchange(act)) == ([], b"")
