"""Where a request ends, and how many fit into a connection: the protocol on a real connection."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from lifelong_core.configuration.settings import Settings
from lifelong_service import metrics
from lifelong_service.transport import connections, protocol
from lifelong_service.transport.connections import Connections
from lifelong_service.transport.protocol import HEADER_BYTES, LimitedProtocol
from lifelong_service.transport.refusals import MAXIMUM_HEAD_BYTES, MAXIMUM_PIPELINED
from lifelong_service.transport.turns import Turns
from tests.unit.service.waiting import in_event_loop

SECONDS = 10
UNREAD_BYTES = 32 * 1024**2
"""More than the sockets of a connection hold."""
INNER = b"GET /inner HTTP/1.1\r\nHost: a\r\n\r\n"


@dataclass
class Application:
    """Answers every request with the size of its body; keeps the scopes; waits for `gate` first.

    The answer to /stream begins at once and ends after `gate`; that to /early does not wait for the body. `is_told` is
    set when the application learns that a client has gone.
    """

    scopes: list[Any] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    is_told: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def paths(self) -> list[str]:
        return [scope["path"] for scope in self.scopes]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        if scope["path"] == "/stream":
            headers = [(b"content-length", b"20")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"begin 1234", "more_body": True})
        await self.gate.wait()
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"5678901end"})
            return
        size, more = 0, scope["path"] != "/early"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.is_told.set()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        body = b"%d bytes\n" % size
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Server:
    """Serves an application on a local address; `made` are the connections, oldest first."""

    def __init__(self, application: Application, *, maximum: int = 10, **settings: Any) -> None:
        self.made: list[LimitedProtocol] = []
        self._options: dict[str, Any] = {
            "app": application,
            "connections": Connections(maximum=maximum, per_address=10, proxies=[]),
            "turns": Turns(),
            "settings": Settings(**settings),
            "config": uvicorn.Config(application, log_config=None),
            "server_state": ServerState(),
            "app_state": {},
        }

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[asyncio.StreamReader]:
        """What the client of a new connection gets."""
        count = len(self.made)
        server = await asyncio.get_running_loop().create_server(self._protocol, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            while len(self.made) == count or self.made[-1].transport is None:
                await asyncio.sleep(0)
            yield reader
        finally:
            writer.close()
            server.close()

    def _protocol(self) -> LimitedProtocol:
        self.made.append(LimitedProtocol(**self._options))
        return self.made[-1]


async def exchange(application: Application, pieces: Iterable[bytes], **settings: Any) -> bytes:
    """All that a client gets until the connection is closed; each piece arrives as a segment of its own."""
    server = Server(application, **settings)
    async with server.reader() as reader:
        for piece in pieces:
            server.made[0].data_received(piece)
            await asyncio.sleep(0)
        application.gate.set()
        return await asyncio.wait_for(reader.read(), SECONDS)


def answers(pieces: Sequence[bytes], *, is_held: bool = False, **settings: Any) -> tuple[bytes, list[str]]:
    """What a client gets, and the paths of the requests that reached the application.

    Args:
        pieces: what it sends.
        is_held: whether the application answers only when everything has arrived.
        settings: of the service.
    """

    async def scenario() -> tuple[bytes, list[str]]:
        application = Application()
        if not is_held:
            application.gate.set()
        return await exchange(application, pieces, **settings), application.paths

    return asyncio.run(scenario())


OFFERS = {
    "a protocol": b"Connection: Upgrade\r\nUpgrade: foo\r\n",
    "HTTP/2, as Java's client does": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n",
    "WebSocket": b"Connection: keep-alive, upgrade\r\nUpgrade: websocket\r\n",
    "two lines": b"Connection: Upgrade\r\nConnection: keep-alive\r\nUpgrade: foo\r\nUpgrade: bar\r\n",
}
LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def in_bytes(sent: bytes) -> list[bytes]:
    return [sent[at : at + 1] for at in range(len(sent))]


def in_halves(sent: bytes) -> list[bytes]:
    return [sent[: len(sent) // 2], sent[len(sent) // 2 :]]


def in_thousands(sent: bytes) -> list[bytes]:
    return [sent[at : at + 1000] for at in range(0, len(sent), 1000)]


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize(
    ("framing", "body"),
    [
        (b"Content-Length: %d\r\n" % len(INNER), INNER),
        (b"Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(INNER), INNER)),
        (b"", b""),
    ],
    ids=["length", "chunks", "no body"],
)
@pytest.mark.parametrize("cut", [lambda sent: [sent], in_bytes], ids=["at once", "in bytes"])
def test_an_offer_to_upgrade_is_ignored_and_the_body_behind_it_is_that_of_its_request(
    offer: bytes, framing: bytes, body: bytes, cut: Callable[[bytes], list[bytes]]
) -> None:
    outer = b"POST /outer?a=%20 HTTP/1.1\r\nHost: a\r\n" + offer + framing + b"\r\n" + body
    received, paths = answers(cut(outer + outer + LAST))
    assert paths == ["/outer", "/outer", "/last"]
    assert received.count(b"HTTP/1.1 200 ") == 3
    assert received.count(b"%d bytes\n" % len(INNER)) == (2 if body else 0)


def test_the_rest_of_a_head_with_an_offer_is_kept() -> None:
    offer = b"POST /a?b=c HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nX-Own: d, \xff\r\n\r\n"
    application = Application()
    application.gate.set()
    received = asyncio.run(exchange(application, [offer]))
    assert b"\r\nconnection: close\r\n" in received
    assert (application.scopes[0]["method"], application.scopes[0]["query_string"]) == ("POST", b"b=c")
    assert application.scopes[0]["headers"] == [
        (b"host", b"a"),
        (b"connection", b"close"),
        (b"x-own", b"d, \xff"),
    ]


@pytest.mark.parametrize("target", [b"a:1", b"/outer"])
def test_what_follows_connect_is_no_request(target: bytes) -> None:
    received, paths = answers([b"CONNECT " + target + b" HTTP/1.1\r\nHost: a:1\r\n\r\n", INNER])
    assert received.startswith(b"HTTP/1.1 400 ")
    assert paths == []


def test_other_versions_of_http_are_refused() -> None:
    for line in (
        b"GET /old",
        b"GET /old HTTP/0.9",
        b"GET /new HTTP/2.0",
        b"PRI * HTTP/2.0",
        b"GET /new HTTP/1.2",
    ):
        received, paths = answers([line + b"\r\nHost: a\r\n\r\n"])
        assert received.startswith(b"HTTP/1.1 400 ")
        assert paths == []


CHUNKED = b"POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = b"x" * (MAXIMUM_HEAD_BYTES + 100)
REFUSED = {
    "no request": ([b"no request\r\n"], [b"400"]),
    "another version": ([b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"], [b"400"]),
    "chunks": ([CHUNKED + b"not a size\r\n"], [b"400"]),
    "a large head": ([b"GET / HTTP/1.1\r\nX: " + LONG + b"\r\n\r\n"], [b"431"]),
    "a head without an end": ([b"GET / HTTP/1.1\r\n", b"X: ", LONG, LONG], [b"431"]),
    "large framing": ([CHUNKED, b"1;" + LONG, LONG], []),
}


@pytest.mark.parametrize(("refused", "statuses"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize(
    ("first", "answer"), [("/first", b"0 bytes\n"), ("/stream", b"begin 12345678901end")]
)
def test_requests_before_a_refused_one_are_answered_first(
    refused: list[bytes], statuses: list[bytes], first: str, answer: bytes
) -> None:
    heads = [b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % path for path in (first.encode(), b"/second")]
    later = b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n"
    for pieces in ([*heads, *refused, later], [b"".join([*heads, refused[0]]), *refused[1:], later]):
        received, paths = answers(pieces, is_held=True)
        assert paths == [first, "/second"]
        assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"200", b"200", *statuses]
        assert received.index(answer) < received.rindex(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("refused", "statuses"), REFUSED.values(), ids=REFUSED)
def test_requests_that_were_answered_before_a_refused_one_change_nothing(
    refused: list[bytes], statuses: list[bytes]
) -> None:
    received, paths = answers([b"GET /first HTTP/1.1\r\nHost: a\r\n\r\n", *refused])
    assert set(paths) <= {"/first", "/chunks"}
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"200", *statuses]


def test_a_refusal_is_no_part_of_an_answer_that_has_begun() -> None:
    received, paths = answers([CHUNKED.replace(b"/chunks", b"/stream"), b"not a size\r\n"], is_held=True)
    assert paths == ["/stream"]
    assert received.endswith(b"\r\n\r\nbegin 1234")


@pytest.mark.parametrize("name", ["no request", "another version", "chunks", "a large head"])
def test_a_connection_keeps_its_place_until_the_requests_before_a_refused_one_are_answered(name: str) -> None:
    async def scenario() -> tuple[bytes, bytes]:
        application = Application()
        server = Server(application, maximum=1)
        async with server.reader() as first:
            server.made[0].data_received(b"GET /first HTTP/1.1\r\nHost: a\r\n\r\n" + refused)
            async with server.reader() as second:
                turned_away = await asyncio.wait_for(second.read(), SECONDS)
            application.gate.set()
            return await asyncio.wait_for(first.read(), SECONDS), turned_away

    (refused,), statuses = REFUSED[name]
    received, turned_away = asyncio.run(scenario())
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"200", *statuses]
    assert turned_away.startswith(b"HTTP/1.1 503 ")


@pytest.mark.parametrize(("path", "expected"), [("/livez", 200), ("/inner", 503)])
def test_the_last_connections_answer_probes_only(
    path: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_PROBE_PART", 2)

    async def scenario() -> bytes:
        application = Application()
        server = Server(application, maximum=2)
        async with server.reader(), server.reader() as last:
            server.made[0].data_received(INNER)
            server.made[1].data_received(
                b"GET %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % path.encode()
            )
            application.gate.set()
            return await asyncio.wait_for(last.read(), SECONDS)

    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 %d " % expected)


EARLY = b"POST /early HTTP/1.1\r\nHost: a\r\n"
IN_CHUNKS = EARLY + b"Transfer-Encoding: chunked\r\n\r\n"
IN_FIVE_BYTES = EARLY + b"Content-Length: 5\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "statuses"),
    [
        ([IN_CHUNKS, b"not a size\r\n"], [b"200"]),
        ([IN_CHUNKS, b"5\r\nabcde\r\n", b"not a size\r\n"], [b"200"]),
        ([IN_CHUNKS, b"5\r\nabc"], [b"200"]),
        ([IN_FIVE_BYTES, b"abc"], [b"200"]),
        ([IN_FIVE_BYTES, b"abc", b"de"], [b"200"]),
        ([IN_FIVE_BYTES, b"abcde", b"no request\r\n"], [b"200", b"400"]),
        ([IN_CHUNKS, b"0\r\n\r\n", b"GET /next HTTP/1.1\r\nX: "], [b"200", b"408"]),
    ],
    ids=["no chunk", "no second chunk", "cut chunk", "cut body", "whole body", "no request", "cut head"],
)
def test_the_rest_of_an_answered_request_gets_no_second_answer(
    pieces: list[bytes], statuses: list[bytes]
) -> None:
    received, paths = answers(pieces, header_timeout_seconds=0.1)
    assert paths == ["/early"]
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == statuses


def test_the_application_learns_of_a_refusal_before_the_client_has_read_it() -> None:
    async def scenario() -> bytes:
        application = Application()
        application.gate.set()
        server = Server(application)
        async with server.reader() as reader:
            (connection,) = server.made
            connection.transport.write(bytes(UNREAD_BYTES))
            connection.data_received(CHUNKED)
            await asyncio.sleep(0)
            connection.data_received(b"not a size\r\n")
            await asyncio.wait_for(application.is_told.wait(), SECONDS)
            return await asyncio.wait_for(reader.read(), SECONDS)

    received = asyncio.run(scenario())[UNREAD_BYTES:]
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"400"]


@pytest.mark.parametrize(
    "cut", [lambda sent: [sent], in_halves, in_thousands], ids=["whole", "halves", "thousands"]
)
@pytest.mark.parametrize("offer", [b"", OFFERS["WebSocket"]], ids=["plain", "offer"])
def test_the_size_of_a_head_is_limited(cut: Callable[[bytes], list[bytes]], offer: bytes) -> None:
    def head(size: int) -> bytes:
        line = b"GET /head HTTP/1.1\r\nHost: a\r\n" + offer
        if not offer:
            line += b"Connection: close\r\n"
        return line + b"X: " + b"x" * size + b"\r\n\r\n"

    fits = head(MAXIMUM_HEAD_BYTES - 200) + LAST
    assert answers(cut(fits))[0].startswith(b"HTTP/1.1 200 ")
    received, paths = answers(cut(head(MAXIMUM_HEAD_BYTES + 1)))
    assert received.startswith(b"HTTP/1.1 431 ")
    assert paths == []


@pytest.mark.parametrize("is_complete", [True, False])
def test_the_number_of_headers_is_limited(*, is_complete: bool) -> None:
    """Tiny headers take a hundred times their size in memory."""
    flood = b"GET /head HTTP/1.1\r\n" + b"a:\r\n" * (MAXIMUM_HEAD_BYTES // HEADER_BYTES)
    received, paths = answers([flood + b"\r\n" * is_complete])
    assert received.startswith(b"HTTP/1.1 431 ")
    assert paths == []


def test_a_malformed_body_is_refused_at_once_and_its_request_does_not_reach_the_application() -> None:
    received, paths = answers([CHUNKED + b"not a size\r\n"])
    assert received.startswith(b"HTTP/1.1 400 ")
    assert paths == []


@pytest.mark.parametrize(
    "head",
    [b"GET /other HTTP/1.1\r\nAuthorization: a\r\n", b"GET /readyz HTTP/1.1\r\n"],
    ids=["token", "probe"],
)
@pytest.mark.parametrize("is_pipelined", [True, False])
def test_strangers_and_pipelined_requests_let_others_pass(head: bytes, *, is_pipelined: bool) -> None:
    flood = b"GET /flood HTTP/1.1\r\nHost: a\r\n"
    flood = (flood + b"Authorization: a\r\n\r\n") * 5 if is_pipelined else flood + b"\r\n"

    async def scenario() -> list[str]:
        application = Application()
        application.gate.set()
        server = Server(application)
        async with AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(server.reader()) for _ in range(9)]
            for connection in server.made[:-1]:
                connection.data_received(flood)
            while is_pipelined and len(application.scopes) < len(readers) - 1:
                await asyncio.sleep(0)
            server.made[-1].data_received(head + b"Host: a\r\nConnection: close\r\n\r\n")
            begun = len(application.scopes)
            while len(application.scopes) <= 8 * flood.count(b"GET"):
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)
        return application.paths[begun:]

    assert asyncio.run(scenario()).index(head.split()[1].decode()) <= 2


@pytest.mark.parametrize(
    "end", [LimitedProtocol.evict, lambda one: one.transport.abort()], ids=["evicted", "lost"]
)
def test_a_closed_connection_starts_no_request(end: Callable[[LimitedProtocol], None]) -> None:
    async def scenario() -> list[str]:
        application = Application()
        application.gate.set()
        server = Server(application)
        async with server.reader(), server.reader():
            first, second = server.made
            first.data_received(b"GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
            second.data_received(INNER * 2)  # it waits for its turn
            end(second)
            await until_lost(second)
            await asyncio.sleep(0.01)
        return application.paths

    assert asyncio.run(asyncio.wait_for(scenario(), SECONDS)) == ["/first"]


def test_a_login_that_asks_whether_to_send_its_form_is_told_to() -> None:
    async def scenario() -> bytes:
        application = Application()
        application.gate.set()
        server = Server(application)
        async with server.reader() as reader:
            (connection,) = server.made
            connection.data_received(
                b"POST /console/login HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                b"Connection: close\r\nContent-Length: 7\r\n\r\n"
            )
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.data_received(b"token=a")
            return await reader.read()

    received = asyncio.run(asyncio.wait_for(scenario(), SECONDS))
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"200"]
    assert received.endswith(b"7 bytes\n")


@pytest.mark.parametrize("padding", [b" ", b"\t", b" \t \t"], ids=["blank", "tab", "several"])
@pytest.mark.parametrize("offer", [b"", OFFERS["a protocol"]], ids=["plain", "offer"])
def test_white_space_around_a_value_is_no_part_of_it(padding: bytes, offer: bytes) -> None:
    application = Application()
    application.gate.set()
    value = b"X-Lifelong-Group:%b47  11%b\r\n" % (padding, padding)
    head = b"GET /a HTTP/1.1\r\nHost: a\r\n" + value + offer + b"X-None:" + padding + b"\r\n\r\n" + LAST
    asyncio.run(exchange(application, in_bytes(head)))
    headers = dict(application.scopes[0]["headers"])
    assert (headers[b"x-lifelong-group"], headers[b"x-none"]) == (b"47  11", b"")


def test_a_client_that_hardly_reads_loses_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a further request, which keeps its place among the connections."""

    async def scenario() -> None:
        application = Application()
        application.gate.set()
        server = Server(application)
        async with server.reader() as reader:
            (connection,) = server.made
            monkeypatch.setattr(protocol, "UNREAD_SECONDS", 0.05)  # not before: the kernel has the same limit
            connection.transport.write(bytes(UNREAD_BYTES))
            connection.data_received(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
            lost = connection.loop.create_task(until_lost(connection))
            while not lost.done():
                await reader.read(1)
                await asyncio.sleep(0.01)
            assert application.paths == ["/next"]
            await asyncio.sleep(0.01)
            assert not connection.tasks

    before = unread()
    asyncio.run(asyncio.wait_for(scenario(), SECONDS))
    assert unread() == before + 1


def test_a_slow_client_that_reads_enough_gets_all() -> None:
    async def scenario() -> None:
        server = Server(Application())
        async with server.reader() as reader:
            (connection,) = server.made
            connection.transport.write(bytes(UNREAD_BYTES))
            for _ in range(4):
                before = connection.transport.get_write_buffer_size()
                await reader.readexactly(UNREAD_BYTES // 8)
                connection._check_reading(before)  # as its timer does
                assert not connection.transport.is_closing()

    before = unread()
    asyncio.run(asyncio.wait_for(scenario(), SECONDS))
    assert unread() == before


async def until_lost(connection: LimitedProtocol) -> None:
    while connection in connection.connections:
        await asyncio.sleep(0.005)


def unread() -> float:
    return metrics.CLOSED_CONNECTIONS.labels("unread")._value.get()


@pytest.mark.parametrize("request_bytes", [b"", INNER], ids=["idle", "within an answer"])
@in_event_loop
async def test_an_evicted_connection_ends_although_its_client_does_not_read(request_bytes: bytes) -> None:
    server = Server(Application(), maximum=1)
    async with server.reader():
        (first,) = server.made
        first.data_received(request_bytes)
        first.transport.write(bytes(UNREAD_BYTES))
        async with server.reader():
            await asyncio.wait_for(until_lost(first), SECONDS)


def numbered(count: int) -> list[bytes]:
    """Requests, of which the last one ends the connection."""
    heads = [b"GET /%d HTTP/1.1\r\nHost: a\r\n" % number for number in range(count)]
    return [head + b"\r\n" for head in heads[:-1]] + [heads[-1] + b"Connection: close\r\n\r\n"]


def test_some_pipelined_requests_are_answered_in_order() -> None:
    received, paths = answers([b"".join(numbered(MAXIMUM_PIPELINED))])
    assert received.count(b"HTTP/1.1 200 ") == MAXIMUM_PIPELINED
    assert paths == [f"/{number}" for number in range(MAXIMUM_PIPELINED)]


@pytest.mark.parametrize("is_split", [True, False])
def test_a_flood_of_pipelined_requests_ends_the_connection(*, is_split: bool) -> None:
    flood = numbered(20 * MAXIMUM_PIPELINED)
    received, paths = answers(flood if is_split else [b"".join(flood)], is_held=True)
    assert received.count(b"HTTP/1.1 200 ") == len(paths) == 1 + MAXIMUM_PIPELINED
    assert b"HTTP/1.1 400 " in received


def test_a_flood_of_tiny_chunks_ends_the_connection() -> None:
    head = b"POST /chunks HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"1\r\nx\r\n" * 2000
    received, _ = answers([head, chunks, chunks, b"0\r\n\r\n"])
    assert b"4000 bytes" not in received


@pytest.mark.parametrize("size", [3000, 30_000])
def test_a_body_in_tiny_segments_is_read(size: int) -> None:
    head = b"POST /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size
    received, _ = answers([head, *[b"x"] * size])
    assert received.endswith(b"%d bytes\n" % size)


def test_a_body_in_ordinary_chunks_is_read() -> None:
    head = b"POST /chunks HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100\r\n" + bytes(256) + b"\r\n"
    received, _ = answers([head, *[chunk] * 2000, b"0\r\n\r\n"])
    assert received.endswith(b"%d bytes\n" % (256 * 2000))
