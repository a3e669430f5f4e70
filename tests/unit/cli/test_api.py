"""The client of the command line against a real HTTP server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lifelong.api import Api

PORTS: list[int] = []


class Logits(BaseHTTPRequestHandler):
    """Answers as the endpoint of logits, and keeps connections open where the client wants it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        PORTS.append(self.client_address[1])
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"logits": [[0.0, 1.0]], "preprocessing_digest": None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    PORTS.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Logits) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_each_call_for_logits_has_a_connection_of_its_own(server: ThreadingHTTPServer) -> None:
    with Api(f"http://127.0.0.1:{server.server_port}", None) as api:
        for _ in range(3):
            assert api.logits_of("model", [b"image"]) == ([[0.0, 1.0]], None)
    assert len(set(PORTS)) == 3
