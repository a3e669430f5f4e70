"""Receivers of notifications: a real HTTP server with scripted answers, and a real SMTP server."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope

from tests.ports import free_port


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers the next request as `answers` say, then with 204."""

    url: str
    answers: list[int | Callable[[Any], None]] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)


@contextmanager
def http_receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received(self.path, dict(self.headers), body))
            answer = receiver.answers.pop(0) if receiver.answers else 204
            receiver.arrived.set()
            if callable(answer):
                answer(self)
                return
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def smtp_receiver() -> Iterator[tuple[int, list[tuple[Envelope, EmailMessage]]]]:
    """Port and received mails, each with its envelope."""
    mails: list[tuple[Envelope, EmailMessage]] = []

    class Handler:
        async def handle_DATA(self, _: object, __: object, envelope: Envelope) -> str:  # noqa: N802
            mails.append((envelope, message_from_bytes(envelope.content or b"", policy=default)))  # type: ignore[arg-type]
            return "250 OK"

    loop, port = asyncio.new_event_loop(), free_port()
    server = loop.run_until_complete(
        loop.create_server(lambda: SMTP(Handler(), loop=loop), "127.0.0.1", port)
    )
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield port, mails
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
