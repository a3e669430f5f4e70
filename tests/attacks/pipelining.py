"""Pipelined requests to routes that need no token: other clients get their turns in between."""

import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from tests.attacks.attack import Outcome, Scale
from tests.attacks.half_open import ATTACKER
from tests.attacks.target import Target

CONNECTIONS = 400
PIPELINED = 32
_BUFFER = bytearray(2**20)
_MARK = b"HTTP/1.1 "
"""Begins every answer, and is in no body."""
_HOST = "Host: service\r\n"
_STRANGER = "Host: service\r\nAuthorization: Bearer ll_wrong\r\n"
_DOCUMENT = f"GET /openapi.json HTTP/1.1\r\n{_HOST}\r\n"
_MIXTURE = (
    _DOCUMENT,
    f"HEAD /openapi.json HTTP/1.1\r\n{_HOST}\r\n",
    f"GET /metrics HTTP/1.1\r\n{_HOST}\r\n",
    f"GET /readyz HTTP/1.1\r\n{_HOST}\r\n",
    f"GET /console/login HTTP/1.1\r\n{_HOST}\r\n",
    f"GET /console/nothing HTTP/1.1\r\n{_HOST}\r\n",
    f"OPTIONS /v1/predict HTTP/1.1\r\n{_HOST}\r\n",
    f"GET /v1/admin/tasks HTTP/1.1\r\n{_STRANGER}\r\n",
    f"POST /v1/predict HTTP/1.1\r\n{_STRANGER}Content-Length: 6\r\n\r\nGET / ",
    f"GET /livez HTTP/1.1\r\n{_HOST}Cookie: {'a=b; ' * 1000}\r\n\r\n",
)


def pipelining(target: Target, scale: Scale) -> Outcome:
    """400 connections of another address, each with 32 requests at once: `/openapi.json`, then several routes."""
    outcome = Outcome()
    for name, requests in (("document", (_DOCUMENT,)), ("mixture", _MIXTURE)):
        with target.watched() as seen:
            answered = _pipeline(target.service.port, requests, scale.seconds)
        for path, witness in (("predictions", seen.predictions), ("/livez", seen.livez)):
            outcome.figures[f"{name}: {path} p50, s"] = round(witness.percentile(50), 4)
            outcome.expect_in_time(f"{name}: {path} p99, s", witness.percentile(99), below=3)
            outcome.expect_in_time(f"{name}: {path} slowest, s", max(witness.seconds), below=8)
            outcome.expect(f"{name}: {path} failures", len(witness.failures), below=1)
            outcome.figures[f"{name}: {path} requests"] = len(witness.seconds)
        outcome.figures[f"{name}: answers to the attacker"] = answered
        outcome.expect(f"{name}: memory growth, MB", seen.growth_megabytes, below=200)
    return outcome


def _pipeline(port: int, requests: Sequence[str], seconds: float) -> int:
    """Send one of the requests on each connection, again when all are answered; return the number of answers."""
    end = time.monotonic() + seconds
    answered = 0
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        for index in range(CONNECTIONS):
            connection = stack.enter_context(_opened(port))
            pipeline = _Pipeline(connection, requests[index % len(requests)].encode() * PIPELINED)
            if pipeline.send():
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ, pipeline)
        while (left := end - time.monotonic()) > 0 and selector.get_map():
            for key, _ in selector.select(left):
                count = key.data.read()
                answered += count or 0
                if count is None:
                    selector.unregister(key.fileobj)
    return answered


def _opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(ATTACKER, 0))


@dataclass
class _Pipeline:
    """One connection; `waiting` answers have not begun."""

    connection: socket.socket
    requests: bytes
    waiting: int = PIPELINED
    seam: bytes = b""

    def send(self) -> bool:
        """Whether the connection is open."""
        with suppress(OSError):
            self.connection.sendall(self.requests)
            return True
        return False

    def read(self) -> int | None:
        """Read some, and send again after the last answer; return the number of answers, or None at the end."""
        try:
            size = self.connection.recv_into(_BUFFER)
        except BlockingIOError:
            return 0
        except OSError:
            return None
        if not size:
            return None
        kept = len(_MARK) - 1
        count = _BUFFER.count(_MARK, 0, size) + (self.seam + _BUFFER[: min(kept, size)]).count(_MARK)
        self.seam = bytes(_BUFFER[max(0, size - kept) : size])
        self.waiting -= count
        if self.waiting <= 0:
            self.waiting = PIPELINED
            self.send()
        return count
