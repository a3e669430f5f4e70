"""Half-open connections: other clients can still connect."""

import selectors
import socket
import time
from typing import cast

from tests.attacks.attack import Outcome, Scale
from tests.attacks.target import Target

UNFINISHED_HEADS = 2_300
SLOW_BODIES = 200
DRIP_SECONDS = 1.0
ATTACKER = "127.0.0.2"
"""Address of the attacker. Limits are per address: other clients of this address may have to connect again."""
REOPENED = 200
_HEAD = b"GET /livez HTTP/1.1\r\nHost: service\r\nX-Slow: "
_BODY = b"POST /v1/predict HTTP/1.1\r\nHost: service\r\nContent-Length: 100000\r\nAuthorization: Bearer %s\r\n\r\n"


def half_open(target: Target, scale: Scale) -> Outcome:
    """2,300 connections of another address that send one byte of a header per second, then 200 with bytes of a body."""
    outcome = Outcome()
    token = (target.service.token or "").encode()
    with target.watched() as seen:
        _drip(target.service.port, _HEAD, UNFINISHED_HEADS, scale.seconds)
        _drip(target.service.port, _BODY % token, SLOW_BODIES, scale.seconds)
    outcome.expect("/livez p99, s", seen.livez.percentile(99), below=1)
    outcome.expect("/livez slowest, s", max(seen.livez.seconds), below=3)
    outcome.expect("/livez failures", len(seen.livez.failures), below=1)
    outcome.expect("innocent p99, s", seen.predictions.percentile(99), below=1)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    outcome.expect("memory growth, MB", seen.growth_megabytes, below=200)
    outcome.figures["/livez requests"] = len(seen.livez.seconds)
    return outcome


def _drip(port: int, head: bytes, count: int, seconds: float) -> None:
    """Open connections and send one byte per second on each; reopen some that the service closes."""
    end = time.monotonic() + seconds
    opened: set[socket.socket] = set()
    allowed = count
    with selectors.DefaultSelector() as selector:
        try:
            while time.monotonic() < end:
                for _ in range(min(count - len(opened), allowed)):
                    _open(port, head, selector, opened)
                allowed = REOPENED
                tick = time.monotonic() + DRIP_SECONDS
                for connection in list(opened):
                    try:
                        connection.send(b"a")
                    except OSError:
                        _forget(connection, selector, opened)
                while (left := tick - time.monotonic()) > 0:
                    for key, _ in selector.select(left):
                        _read(cast("socket.socket", key.fileobj), selector, opened)
        finally:
            for connection in opened:
                connection.close()


def _open(port: int, head: bytes, selector: selectors.BaseSelector, opened: set[socket.socket]) -> None:
    try:
        connection = socket.create_connection(("127.0.0.1", port), timeout=0.2, source_address=(ATTACKER, 0))
    except OSError:
        return
    try:
        connection.sendall(head)
    except OSError:
        connection.close()
        return
    connection.setblocking(False)
    selector.register(connection, selectors.EVENT_READ)
    opened.add(connection)


def _read(connection: socket.socket, selector: selectors.BaseSelector, opened: set[socket.socket]) -> None:
    try:
        if connection.recv(65536):
            return
    except BlockingIOError:
        return
    except OSError:
        pass
    _forget(connection, selector, opened)


def _forget(connection: socket.socket, selector: selectors.BaseSelector, opened: set[socket.socket]) -> None:
    selector.unregister(connection)
    opened.discard(connection)
    connection.close()
