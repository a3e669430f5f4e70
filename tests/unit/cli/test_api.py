"""The client of the command line against a real HTTP server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lifelong.client import Client
from lifelong_core.values.errors import ConfigurationError, LifelongError, UnavailableError

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
    with Client(f"http://127.0.0.1:{server.server_port}", None) as api:
        for _ in range(3):
            assert api.logits_of("model", [b"image"]) == ([[0.0, 1.0]], None)
    assert len(set(PORTS)) == 3


def use_proxy(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://proxy.clinic:1080"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_this_machine_is_reached_without_the_proxy_of_the_site(server, monkeypatch, host, proxy):
    use_proxy(monkeypatch, proxy)
    with Client(f"http://{host}:{server.server_port}", None) as api:
        assert api.logits_of("model", [b"image"]) == ([[0.0, 1.0]], None)


def test_a_proxy_that_answers_in_place_of_the_service_is_named(server, monkeypatch):
    proxy = f"127.0.0.1:{server.server_port}"
    use_proxy(monkeypatch, f"http://me:secret@{proxy}")
    with (
        Client("http://service.clinic:3000", None) as api,
        pytest.raises(LifelongError, match=f"answered 501.*proxy http://me:\\*\\*\\*@{proxy}.*NO_PROXY"),
    ):
        api.get("/v1/admin/models")


def test_a_proxy_that_does_not_answer_is_named(monkeypatch):
    use_proxy(monkeypatch, "http://127.0.0.1:9")
    with (
        Client("http://service.clinic:3000", None) as api,
        pytest.raises(UnavailableError, match=r"proxy http://127\.0\.0\.1:9 .*NO_PROXY"),
    ):
        api.get("/v1/admin/models")


def test_a_proxy_that_cannot_be_used_is_a_wrong_setting(monkeypatch):
    use_proxy(monkeypatch, "ftp://proxy.clinic")
    with pytest.raises(ConfigurationError, match="NO_PROXY"):
        Client("http://service.clinic:3000", None)
