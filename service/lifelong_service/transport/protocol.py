"""HTTP connections of a worker: limits that the server (uvicorn) lacks.

They apply before a request reaches the application, whose own limits are in `lifelong_service.guard`.
"""

import asyncio
import functools
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from lifelong_core.configuration.settings import Settings
from lifelong_service import metrics
from lifelong_service.clients.addresses import network_of, normalised_address
from lifelong_service.transport import refusals
from lifelong_service.transport.connections import NOTE_OWNER, Connections
from lifelong_service.transport.joined_writes import JoinedWrites
from lifelong_service.transport.refusals import (
    MAXIMUM_HEAD_BYTES,
    MAXIMUM_LOGIN_BYTES,
    MAXIMUM_PIPELINED,
    Refusal,
)
from lifelong_service.transport.turns import Turns

UNREAD_SECONDS = 30
"""Time in seconds without any acknowledgement by the client after which an answer is dropped."""
LEAST_READ_BYTES = 65_536
"""Bytes of an answer that a client has to read in that time while more than a full buffer waits for it."""
HEADER_BYTES = 32
"""What a header counts besides its name and value, as in HTTP/2 (RFC 9113, 6.5.2): it limits their number."""
TINY_CHUNK_BYTES = 64
"""Size below which the missing bytes of a chunk count as framing, too."""
CHUNK_FRAMING_BYTES = 16
"""Usual framing of a chunk: its size in hexadecimal and two line ends."""

_VERSIONS = ("1.0", "1.1")
_AROUND_VALUES = b" \t"
"""Optional white space around the value of a header."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PROBES = ("/livez", "/readyz")
_LOGIN = "/console/login"


class LimitedProtocol(HttpToolsProtocol):
    """One connection, with the HTTP protocol of the server and our limits.

    - The time limit of the first request head starts with the connection, that of each further head with its first
      byte. Bytes that follow an early answer count as the next head.
    - An idle connection is closed after `keep_alive_seconds`.
    - A connection whose client does not read its answer is closed: by the kernel, or here if the client reads some
      bytes now and then.
    - A login, whose body needs no token, reaches the application when it is complete: a slow one costs only its
      connection, for a short time.
    - Everything of a request but its body has a largest size: head, framing of chunks, and trailers, which are ignored.
    - Offers to upgrade the connection are ignored (RFC 9110, 7.8); there are no WebSockets and no tunnels.
    - Requests start in turns: see `Turns`.
    - White space around the value of a header is no part of it (RFC 9110, 5.5).
    - What is refused here (400, 431) is refused after the answers to the requests before it. The rest of a request that
      has its answer gets no second one (400, 408): the connection is closed. What is refused in the piece that ends its
      head does not reach the application.

    Args:
        app: answers the requests.
        connections: all connections of this worker.
        turns: all requests of this worker that have not started.
        settings: the limits.
        options: arguments from the server.
    """

    def __init__(
        self, *, app: Any, connections: Connections, turns: Turns, settings: Settings, **options: Any
    ) -> None:
        super().__init__(**options)
        self.app = app
        self.access_log = False
        self.address = self._network = ""
        self.timeout_keep_alive = settings.keep_alive_seconds
        self.ws_protocol_class = None
        self._all = connections
        self._turns = turns
        self._goes_on = False
        self._present: RequestResponseCycle | None = None
        """The request that is being answered, or will be next; `cycle` is the newest one."""
        self._head_seconds = settings.header_timeout_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._login_seconds = settings.login_timeout_seconds
        self._login_timer: asyncio.TimerHandle | None = None
        self._held: tuple[RequestResponseCycle, Any] | None = None
        self._is_in_head = False
        self._framing_bytes = 0
        self._begins_chunk = False
        self._head_bytes = 0
        self._is_offer = False
        self._refusal: Refusal | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count the new connection."""
        super().connection_made(cast("asyncio.Transport", JoinedWrites(transport, self.loop)))
        peer = transport.get_extra_info("peername")
        self.address = normalised_address(str(peer[0])) if isinstance(peer, tuple) else ""
        self._network = network_of(self.address)
        if self.client is not None:
            # An IPv4 address that is mapped to IPv6 would be none of the trusted proxies.
            self.client = self.address, self.client[1]
        _give_up_unread_answers(transport.get_extra_info("socket"))
        if self._all.admit(self):
            self._start_timer()
        else:
            self._close(refusals.NO_ROOM)

    def data_received(self, data: bytes) -> None:
        """Handle received bytes."""
        if self._refusal is not None or self.transport.is_closing():
            return
        self._framing_bytes += len(data)
        self._unset_keepalive_if_required()
        refusal = self._read(data)
        # Also before a refusal: the requests before it keep their connection until they are answered.
        self._note_whose_turn()
        if self._carries_request:
            self._stop_timer()
        elif self._head_timer is None:
            self._start_timer()
        if refusal is not None:
            self._refuse(refusal)

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        if len(self.pipeline) >= MAXIMUM_PIPELINED:
            self._refusal = refusals.PIPELINED
            raise ValueError("too many requests before the first answer")
        self._is_in_head = True
        self._head_bytes = 0
        self._begins_chunk = False
        if not self._is_offer:
            self._framing_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, but no trailer: they would be added to the headers that were checked."""
        if self._is_in_head:
            self._head_bytes += len(name) + len(value) + HEADER_BYTES
            self._check_head()
            super().on_header(name, value.strip(_AROUND_VALUES))

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        self._is_in_head = False
        self._check_head()
        parser = self._parser
        if parser.get_method() == b"CONNECT" or parser.get_http_version() not in _VERSIONS:
            raise ValueError("a tunnel, or another version of HTTP")
        self._is_offer = parser.should_upgrade()
        if not self._is_offer:
            super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Begin a chunk."""
        self._begins_chunk = True

    def on_body(self, body: bytes) -> None:
        """Count a part of the body, which is no framing; its chunk may have some bytes of framing."""
        # A tiny chunk costs as much as a large one; a tiny segment of a body without chunks has the network's pace.
        missing = max(0, TINY_CHUNK_BYTES - len(body)) if self._begins_chunk else 0
        self._begins_chunk = False
        self._framing_bytes = max(0, self._framing_bytes - len(body) - CHUNK_FRAMING_BYTES) + missing
        super().on_body(body)
        if self._held is not None and len(self.cycle.body) > MAXIMUM_LOGIN_BYTES:
            self._refusal = refusals.LARGE_LOGIN
            raise ValueError("a large login")

    def on_message_complete(self) -> None:
        """End a request, unless its head is read again."""
        if not self._is_offer:
            super().on_message_complete()
            self.cycle.more_body = False  # the server leaves it where the answer came first
            if self._held is not None:
                held = self._held
                self._stop_login_timer()
                self._start_asgi_task(*held)

    def on_response_complete(self) -> None:
        """Mark the connection idle after an answer, unless the next request has arrived."""
        is_last = not self.pipeline
        self._goes_on = not is_last
        super().on_response_complete()
        self._goes_on = False
        if self._refusal is not None:
            if is_last:
                self._close(self._refusal)
        else:
            self._note_whose_turn()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the closed connection."""
        self._end_present()
        super().connection_lost(exc)
        self._stop_timer()
        self._stop_login_timer()
        self._stop_reading_timer()
        self._all.remove(self)

    def evict(self) -> None:
        """Close this connection in favour of another one."""
        has_unread = self.transport.get_write_buffer_size() > 0
        may_answer = self._carries_request and not self.cycle.response_started
        self._close(refusals.EVICTED if may_answer else refusals.EVICTED._replace(answer=b""))
        if has_unread:
            self.transport.abort()  # else it would stay until its client reads

    def pause_writing(self) -> None:
        """Watch a client that leaves more than a full buffer unread."""
        super().pause_writing()
        self._watch_reading()
        self._note_whose_turn()

    def resume_writing(self) -> None:
        """Go on: the client has read most of it."""
        super().resume_writing()
        self._stop_reading_timer()
        self._note_whose_turn(is_kept=True)

    @property
    def _parser(self) -> httptools.HttpRequestParser:
        return self.parser

    @property
    def _carries_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _waits_for_client(self) -> bool:
        return (
            not self._carries_request
            or (self.cycle.more_body and not self.pipeline)
            or self.flow.write_paused
        )

    def _note_whose_turn(self, *, is_kept: bool = False) -> None:
        """Note whether this connection waits for its client, or for the service, which may have no room for it."""
        if self._waits_for_client:
            self._all.wait(self)
            return
        cycle = self.cycle
        if not self.pipeline:
            is_kept = is_kept or cycle.response_started or cycle.scope["path"].endswith(_PROBES)
        if not self._all.carry(self, is_kept=is_kept):
            self._close(refusals.NO_ROOM)

    def _read(self, data: bytes) -> Refusal | None:
        """Read requests; return why the last one is refused, if it is."""
        try:
            self._parse(data)
        except httptools.HttpParserError:
            return self._refusal or refusals.MALFORMED
        if self._framing_bytes <= MAXIMUM_HEAD_BYTES:
            return None
        return refusals.LARGE_HEAD if self._is_in_head else refusals.LARGE_FRAMING

    def _parse(self, data: bytes) -> None:
        """Read requests. The parser stops behind the head of one that offers an upgrade, and skips its body."""
        rest = data
        while True:
            try:
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as offer:
                rest = rest[offer.args[0] :]
                self._read_without_offer()
            else:
                return

    def _read_without_offer(self) -> None:
        """Read the last head again, without its offer, by a new parser, which reads its body, too."""
        line = self._parser.get_method(), self.url, self._parser.get_http_version().encode()
        self.parser = httptools.HttpRequestParser(self)
        # As the server sets it: what follows a request with `Connection: close` is no error.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        headers = b"".join(b"%b: %b\r\n" % header for header in _without_offer(self.headers))
        self.parser.feed_data(b"%b %b HTTP/%b\r\n%b\r\n" % (*line, headers))

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse the request that arrives, and all that follows, once those before it are answered."""
        self._refusal = refusal
        newest = self.cycle
        is_incomplete = newest is not None and newest.more_body
        if is_incomplete and self.pipeline:
            self.pipeline.popleft()
        elif is_incomplete:
            # Text within an answer would be taken for a part of it, text behind it for the answer to the next request.
            self._close(refusal._replace(answer=b"") if newest.response_started else refusal)
        elif not self._carries_request:
            self._close(refusal)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._present = cycle
        if cycle.more_body and cycle.scope["method"] == "POST" and cycle.scope["path"].endswith(_LOGIN):
            self._held = cycle, app
            self._login_timer = self.loop.call_later(self._login_seconds, self._close, refusals.SLOW_LOGIN)
            if cycle.waiting_for_100_continue:  # the application, which would say so, does not ask for it yet
                cycle.waiting_for_100_continue = False
                self.transport.write(_CONTINUE)
            return
        cast("dict[str, Any]", cycle.scope)[NOTE_OWNER] = functools.partial(self._all.own, self)
        start = super()._start_asgi_task
        is_known = cycle.scope["path"].endswith(_PROBES) or any(
            name == b"authorization" for name, _ in cycle.scope["headers"]
        )
        self._turns.take(
            self._network,
            self,
            lambda: start(cycle, functools.partial(_answer_unless_refused, cycle, app)),
            is_later=self._goes_on or not is_known,
        )

    def _check_head(self) -> None:
        if self._head_bytes + len(self.url) > MAXIMUM_HEAD_BYTES:
            self._refusal = refusals.LARGE_HEAD
            raise ValueError("a large head")

    def _watch_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._reading_timer = self.loop.call_later(UNREAD_SECONDS, self._check_reading, unread)

    def _check_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() <= before - LEAST_READ_BYTES:
            self._watch_reading()
            return
        metrics.CLOSED_CONNECTIONS.labels("unread").inc()
        self.transport.abort()

    def _stop_reading_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def _stop_login_timer(self) -> None:
        self._held = None
        if self._login_timer is not None:
            self._login_timer.cancel()
            self._login_timer = None

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._head_seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_out(self) -> None:
        if not self._carries_request:
            self._close(refusals.TIMED_OUT if self._is_in_head else refusals.NEVER_BEGUN)

    def _close(self, refusal: Refusal) -> None:
        if self.transport.is_closing():
            return
        metrics.CLOSED_CONNECTIONS.labels(refusal.reason).inc()
        if refusal.answer:
            self.transport.write(refusal.answer)
        self._stop_timer()
        self.transport.close()
        # At once: the server tells the application only after the client has read what is written.
        self._end_present()

    def _end_present(self) -> None:
        """Tell the application that the client has gone; the server tells only the newest request."""
        self._turns.leave(self._network, self)
        if self._present is not None and not self._present.response_complete:
            self._present.disconnected = True
            self._present.message_event.set()


async def _answer_unless_refused(
    cycle: RequestResponseCycle, app: Any, scope: Any, receive: Any, send: Any
) -> None:
    """Call the application, unless the connection was closed before the request reached it."""
    if not cycle.disconnected:
        await app(scope, receive, send)


def _without_offer(headers: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers:
        if name == b"connection":
            options = [option.strip() for option in value.split(b",")]
            if others := [option for option in options if option.lower() != b"upgrade"]:
                yield name, b", ".join(others)
        elif name != b"upgrade":
            yield name, value


def _give_up_unread_answers(connection: socket.socket | None) -> None:
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux only
    if connection is not None and option is not None:
        with suppress(OSError):  # a Unix socket
            connection.setsockopt(socket.IPPROTO_TCP, option, UNREAD_SECONDS * 1000)
