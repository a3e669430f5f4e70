"""HTTP connections of a worker: limits that the server (uvicorn) lacks, and the direct way to our application.

These limits apply before a request reaches the application, whose own limits are in `guard` and `middleware`.
"""

import asyncio
import functools
import ipaddress
import json
import logging
import resource
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from uvicorn import config
from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lifelong_core.settings import Settings
from lifelong_service import metrics
from lifelong_service.http.connections import Connections
from lifelong_service.http.joined_writes import JoinedWrites

logger = logging.getLogger(__name__)

UNREAD_SECONDS = 30
"""Time in seconds without any acknowledgement by the client after which an answer is dropped."""
OTHER_FILES = 256
"""Files of a worker besides its connections: database, spool, models, libraries."""
MAXIMUM_HEAD_BYTES = 65_536
"""Largest head of a request, or framing and trailers of its body; the parser itself has no limit. The last received
piece may exceed it."""
MAXIMUM_PIPELINED = 32
"""Largest number of requests of a connection that wait for the answer to an earlier one."""
TINY_CHUNK_BYTES = 64
"""Size below which a chunk counts as framing, too."""
CHUNK_FRAMING_BYTES = 16
"""Usual framing of a chunk: its size in hexadecimal and two line ends."""


def _refusal(status: HTTPStatus, message: str, hint: str, headers: str = "") -> bytes:
    """Return a complete answer for a connection that is then closed."""
    code = status.phrase.lower().replace(" ", "_")
    body = json.dumps({"error": {"code": code, "field": None, "message": message, "hint": hint}})
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n{headers}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    ).encode()


_MALFORMED = _refusal(
    HTTPStatus.BAD_REQUEST,
    "this is not a request of HTTP/1.1.",
    "End every line of its head with CR LF, and declare the length of its body once.",
)
_TIMED_OUT = _refusal(
    HTTPStatus.REQUEST_TIMEOUT,
    "the head of the request did not arrive in time.",
    "Send all headers at once (LIFELONG_HEADER_TIMEOUT_SECONDS).",
)
_LARGE_HEAD = _refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    f"the head of the request is larger than {MAXIMUM_HEAD_BYTES} bytes.",
    "Send fewer or shorter headers, and data in the body.",
)
_NO_ROOM = _refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "too many connections.",
    "Use fewer connections, or try again later.",
    "Retry-After: 1\r\n",
)


def serve_directly(app: Any, settings: Settings) -> None:
    """Let the server of this process, which is created later, call our application, within the limits of the settings.

    BentoML's middlewares and its own paths (schema, metrics, health, static files) are bypassed. Only trusted proxies
    may forward client addresses; uvicorn's default trusts every process of this machine.

    Args:
        app: an ASGI application.
        settings: limits.
    """
    if settings.trusted_proxies:
        app = ProxyHeadersMiddleware(app, trusted_hosts=list(settings.trusted_proxies))
    maximum = _reserve_files(settings.maximum_connections)
    connections = Connections(
        maximum=maximum,
        per_address=settings.maximum_connections_per_address,
        proxies=[ipaddress.ip_network(network) for network in settings.trusted_proxies],
    )
    protocol: Any = functools.partial(LimitedProtocol, app=app, connections=connections, settings=settings)
    HTTP_PROTOCOLS["auto"] = protocol


def _reserve_files(connections: int) -> int:
    """Raise the limit of open files of this process; return how many connections it allows.

    The server accepts up to its whole backlog of connections before it handles the first of them.
    """
    backlog = config.Config("", log_config=None).backlog  # else it would change the loggers
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + backlog + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    possible = max(1, min(connections, (soft - OTHER_FILES) // 2))
    logger.warning(
        "this process may open %d files only: at most %d connections instead of LIFELONG_MAXIMUM_CONNECTIONS=%d."
        " Raise the limit (`ulimit -Hn`, LimitNOFILE= of systemd) to %d.",
        soft,
        possible,
        connections,
        needed,
    )
    return possible


class LimitedProtocol(HttpToolsProtocol):
    """One connection, with the HTTP protocol of the server and our limits.

    - The time limit of the first request head starts with the connection, that of each further head with its first
      byte. Bytes that follow an early answer count as the next head.
    - An idle connection is closed after `keep_alive_seconds`.
    - The kernel closes the connection of a client that does not read its answer.
    - Everything of a request but its body has a largest size: head, framing of chunks, and trailers, which are ignored.
    - There are no WebSockets.

    Args:
        app: answers the requests.
        connections: all connections of this worker.
        settings: the limits.
        options: arguments from the server.
    """

    def __init__(self, *, app: Any, connections: Connections, settings: Settings, **options: Any) -> None:
        super().__init__(**options)
        self.app = app
        self.access_log = False
        self.address = ""
        self.timeout_keep_alive = settings.keep_alive_seconds
        self.ws_protocol_class = None
        self._all = connections
        self._head_seconds = settings.header_timeout_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_in_head = False
        self._framing_bytes = 0
        self._begins_chunk = False
        self._is_silent = True

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count the new connection."""
        super().connection_made(JoinedWrites(transport, self.loop))
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        _give_up_unread_answers(transport.get_extra_info("socket"))
        if self._all.admit(self):
            self._start_timer()
        else:
            self._close("refused", _NO_ROOM)

    def data_received(self, data: bytes) -> None:
        """Handle received bytes."""
        if self.transport.is_closing():
            return
        self._is_silent = False
        self._framing_bytes += len(data)
        super().data_received(data)
        if self._framing_bytes > MAXIMUM_HEAD_BYTES:
            self._close("large_head", _LARGE_HEAD if self._is_in_head else b"")
        elif self._carries_request:
            self._all.carry(self)
            self._stop_timer()
        elif self._head_timer is None:
            self._start_timer()

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        if len(self.pipeline) >= MAXIMUM_PIPELINED:
            raise ValueError("too many requests before the first answer")
        self._is_in_head = True
        self._framing_bytes = 0
        self._begins_chunk = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, but no trailer: they would be added to the headers that were checked."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        self._is_in_head = False
        # The parser would take the body of such a request for the next request.
        if self.parser.should_upgrade() and (
            self.parser.get_method() == b"CONNECT"
            or any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        ):
            raise ValueError("a body after an offer to upgrade")
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

    def send_400_response(self, msg: str) -> None:
        """Answer 400: the bytes are no HTTP request."""
        del msg
        self.transport.write(_MALFORMED)
        self.transport.close()

    def on_response_complete(self) -> None:
        """Mark the connection idle after an answer, unless the next request has arrived."""
        super().on_response_complete()
        if not self._carries_request:
            self._is_silent = True
            self._all.wait(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the closed connection."""
        super().connection_lost(exc)
        self._stop_timer()
        self._all.remove(self)

    def evict(self) -> None:
        """Close this connection in favour of another one."""
        self._close("evicted")

    @property
    def _carries_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._head_seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_out(self) -> None:
        if not self._carries_request:
            self._close("header_timeout", b"" if self._is_silent else _TIMED_OUT)

    def _close(self, reason: str, last_words: bytes = b"") -> None:
        if self.transport.is_closing():
            return
        metrics.CLOSED_CONNECTIONS.labels(reason).inc()
        if last_words:
            self.transport.write(last_words)
        self._stop_timer()
        self.transport.close()


def _give_up_unread_answers(connection: socket.socket | None) -> None:
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux only
    if connection is not None and option is not None:
        with suppress(OSError):  # a Unix socket
            connection.setsockopt(socket.IPPROTO_TCP, option, UNREAD_SECONDS * 1000)
