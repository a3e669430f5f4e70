"""Misused connections on raw sockets: they are closed in time and do not block others."""

import http.client
import json
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psutil
import pytest

from tests.integration.installation import Installation, image, install
from tests.integration.processes import Service, running_service

HEADER_SECONDS = 2.0
KEEP_ALIVE_SECONDS = 4.0
REQUEST_SECONDS = 2.0
PER_ADDRESS = 20
PATIENCE_SECONDS = 60.0
SERVICE = (sys.executable, "-m", "lifelong_service")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return install(tmp_path_factory.mktemp("connections"))


@pytest.fixture(scope="module")
def service(installation: Installation) -> Iterator[Service]:
    """One worker, so that every connection is at the same one, with limits that are soon reached."""
    with running_service(
        installation.settings.data_directory.parent,
        installation.token,
        workers=1,
        header_timeout_seconds=HEADER_SECONDS,
        keep_alive_seconds=KEEP_ALIVE_SECONDS,
        request_timeout_seconds=REQUEST_SECONDS,
        login_timeout_seconds=REQUEST_SECONDS / 2,
        maximum_connections=2 * PER_ADDRESS - 5,
        maximum_connections_per_address=PER_ADDRESS,
        trusted_proxies='["127.0.0.9"]',
    ) as started:
        started.wait_until_ready()
        yield started


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One worker with the usual limits, but of open files."""
    folder = tmp_path_factory.mktemp("usual")
    token, command = install(folder).token, ("prlimit", "--nofile=300:", *SERVICE)
    with running_service(folder, token, command=command, workers=1) as started:
        started.wait_until_ready()
        yield started


def opened(service: Service, data: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
    """A connection from that address on which the data was sent."""
    connection = socket.create_connection(
        ("127.0.0.1", service.port), timeout=PATIENCE_SECONDS, source_address=(address, 0)
    )
    connection.sendall(data)
    return connection


def read_to_end(connection: socket.socket, drip: bytes = b"") -> bytes:
    """All that the service sends until it closes; meanwhile `drip` is sent again and again."""
    connection.settimeout(0.2)
    received, end = b"", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        with suppress(TimeoutError):
            try:
                if drip:
                    connection.sendall(drip)
                if not (data := connection.recv(65536)):
                    return received
                received += data
            except (ConnectionResetError, BrokenPipeError):
                return received
    raise AssertionError(f"still open after {PATIENCE_SECONDS} s, got {received!r}")


def answer(service: Service, data: bytes) -> bytes:
    """What the service says until it closes the connection."""
    with opened(service, data) as connection:
        return read_to_end(connection)


def read_answer(connection: socket.socket) -> bytes:
    """One answer of /livez."""
    received = b""
    while not received.endswith(b"alive\n"):
        data = connection.recv(65536)
        assert data, f"closed after {received!r}"
        received += data
    return received


def status(received: bytes) -> int:
    return int(received.split(b" ", 2)[1])


def is_open(connection: socket.socket) -> bool:
    """Whether the service has neither sent anything nor closed it."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    return False


def closed(service: Service, reason: str) -> float:
    """How many connections the service says to have closed for this reason."""
    text = service.send("GET", "/metrics").content.decode()
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith(f'lifelong_closed_connections_total{{reason="{reason}"}}')
    ]
    return float(line.split()[-1])


HEAD = b"GET /livez HTTP/1.1\r\nHost: service\r\n"
FINISHED = HEAD + b"\r\n"


def test_a_head_that_never_ends_is_cut_off(service: Service) -> None:
    before = closed(service, "header_timeout")
    with opened(service, HEAD + b"X: ") as connection:
        received = read_to_end(connection, drip=b"a")
    assert status(received) == 408
    assert b"LIFELONG_HEADER_TIMEOUT_SECONDS" in received
    assert closed(service, "header_timeout") == before + 1


def test_a_connection_that_says_nothing_is_closed_without_a_word(service: Service) -> None:
    assert answer(service, b"") == b""


def test_a_second_head_that_never_ends_is_cut_off(service: Service) -> None:
    with opened(service, FINISHED) as connection:
        assert status(read_answer(connection)) == 200
        connection.sendall(HEAD)
        received = read_to_end(connection, drip=b"X-Y: a\r\n")
    assert status(received) == 408


def test_an_idle_connection_is_closed(service: Service) -> None:
    with opened(service, FINISHED) as connection:
        assert status(read_answer(connection)) == 200
        assert read_to_end(connection) == b""


def test_a_connection_in_use_outlives_all_limits(service: Service) -> None:
    with opened(service) as connection:
        end = time.monotonic() + HEADER_SECONDS + KEEP_ALIVE_SECONDS
        while time.monotonic() < end:
            connection.sendall(FINISHED)
            assert status(read_answer(connection)) == 200
            time.sleep(0.2)
        connection.sendall(FINISHED * 3)  # pipelined
        received = b""
        while received.count(b"HTTP/1.1 200") < 3:
            received += connection.recv(65536)


def test_pipelined_requests_with_bodies_are_answered_in_their_order(usual: Service) -> None:
    """Also where they arrive in small pieces."""
    body = json.dumps({"logits": [[1.0, 0.5, 2.0]], "model": "remote"}).encode()
    own = f"Host: a\r\nAuthorization: Bearer {usual.token}\r\n".encode()
    kinds = (
        (b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n", b"200"),
        (b"POST /v1/logits HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (own, len(body), body), b"200"),
        (b"OPTIONS /v1/predict HTTP/1.1\r\nHost: a\r\n\r\n", b"405"),
        (b"HEAD /livez HTTP/1.1\r\nHost: a\r\n\r\n", b"200"),
    )
    sent = b"".join(request for request, _ in kinds) * 5
    last = FINISHED.replace(b"Host", b"Connection: close\r\nHost")
    for size in (len(sent), 100):
        with opened(usual) as connection:
            for start in range(0, len(sent), size):
                connection.sendall(sent[start : start + size])
            connection.sendall(last)
            received = read_to_end(connection)
        assert re.findall(rb"HTTP/1\.1 (\d+) ", received) == [code for _, code in kinds] * 5 + [b"200"]


@pytest.mark.parametrize("begun", [b"", b"a" * 500_000], ids=["slow", "fast at first"])
def test_a_body_that_never_ends_is_cut_off(service: Service, begun: bytes) -> None:
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer {service.token}\r\n"
        "Content-Length: 1000000\r\n\r\n"
    )
    with opened(service, head.encode() + begun) as connection:
        received = read_to_end(connection, drip=b"a")
    assert status(received) == 503


@pytest.mark.parametrize("drip", [b"a", b"a" * 10_000], ids=["slow", "large"])
def test_a_login_is_small_and_complete_in_time(service: Service, drip: bytes) -> None:
    head = b"POST /console/login HTTP/1.1\r\nHost: service\r\nContent-Length: 1000000\r\n\r\n"
    before = closed(service, "login")
    with opened(service, head) as connection:
        received = read_to_end(connection, drip=drip)
    assert status(received) == (408 if len(drip) == 1 else 413)
    assert closed(service, "login") == before + 1


def test_a_slow_uplink_is_served_for_longer_than_a_request_may_take(service: Service) -> None:
    body = image(edge=400)
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer {service.token}\r\n"
        f"Content-Type: image/png\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with opened(service, head.encode()) as connection:
        parts = range(0, len(body), 125_000 // 5)  # 1 Mbit/s
        for start in parts:
            connection.sendall(body[start : start + parts.step])
            time.sleep(0.2 * 3)
        assert len(parts) * 0.2 * 3 > 1.5 * REQUEST_SECONDS
        assert status(connection.recv(65536)) == 200


def test_a_body_that_goes_on_after_its_refusal_is_cut_off(service: Service) -> None:
    head = b"POST /v1/predict HTTP/1.1\r\nHost: service\r\nContent-Length: 1000000\r\n\r\n"
    with opened(service, head) as connection:
        received = read_to_end(connection, drip=b"a")
    assert status(received) == 401


@pytest.mark.parametrize("address", ["127.0.0.2", "127.0.0.9"])
def test_waiting_connections_give_way_to_new_ones(service: Service, address: str) -> None:
    """Of their own address where it has too many (not for a proxy), else of all."""
    before = closed(service, "evicted")
    with ExitStack() as stack:
        for _ in range(3 * PER_ADDRESS):
            stack.enter_context(opened(service, HEAD, address))
        with opened(service, FINISHED, address) as connection:
            assert status(read_answer(connection)) == 200
        for _ in range(5):
            assert service.send("GET", "/livez").status == 200
    assert closed(service, "evicted") > before


@pytest.mark.parametrize(
    ("address", "expected"), [("127.0.0.2", PER_ADDRESS), ("127.0.0.9", PER_ADDRESS + 5)]
)
def test_only_a_proxy_may_open_more_than_an_address(service: Service, address: str, expected: int) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(opened(service, b"", address)) for _ in range(PER_ADDRESS + 5)]
        for _ in range(3):  # by then it has looked at all of them
            assert service.send("GET", "/livez").status == 200
        assert sum(map(is_open, waiting)) == expected


def test_one_address_cannot_close_the_connections_of_another(service: Service) -> None:
    with opened(service, FINISHED, "127.0.0.3") as innocent, ExitStack() as stack:
        assert status(read_answer(innocent)) == 200
        for _ in range(3 * PER_ADDRESS):
            stack.enter_context(opened(service, HEAD, "127.0.0.4"))
        assert service.send("GET", "/livez").status == 200
        assert is_open(innocent)


def slow_body(service: Service) -> bytes:
    head = f"POST /v1/predict HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer {service.token}\r\n"
    return f"{head}Content-Length: 1000\r\n\r\n".encode()


def test_a_token_on_many_addresses_is_one_client(service: Service) -> None:
    with ExitStack() as stack:
        for number in range(2 * PER_ADDRESS - 10):
            stack.enter_context(opened(service, slow_body(service), f"127.0.1.{1 + number // 2}"))
        others = [stack.enter_context(opened(service, FINISHED, "127.0.0.3")) for _ in range(4)]
        assert [status(read_answer(other)) for other in others] == [200] * 4
        for _ in range(4):
            newcomer = stack.enter_context(opened(service, FINISHED, "127.0.0.4"))
            assert status(read_answer(newcomer)) == 200
        assert all(map(is_open, others))


@pytest.mark.parametrize("addresses", [("127.0.0.5",), ("127.0.0.5", "127.0.0.6", "127.0.0.7")])
def test_slow_bodies_make_room(service: Service, addresses: Sequence[str]) -> None:
    before = closed(service, "evicted")
    with opened(service, FINISHED, "127.0.0.3") as innocent, ExitStack() as stack:
        assert status(read_answer(innocent)) == 200
        slow_ones = [
            stack.enter_context(opened(service, slow_body(service), address))
            for address in addresses
            for _ in range(PER_ADDRESS)
        ]
        for _ in range(3):  # by then it has read all these heads
            assert service.send("GET", "/livez").status == 200
        with opened(service, FINISHED, addresses[0]) as connection:
            assert status(read_answer(connection)) == 200
        received = slow_ones[0].recv(65536)
        assert is_open(innocent)
    assert status(received) == 503
    assert b"Retry-After" in received
    assert closed(service, "evicted") > before


CHUNKED = b"POST /v1/logits HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
AMBIGUOUS = {
    "both lengths": CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /v1/logits HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": b"POST /v1/logits HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/2": b"GET /livez HTTP/2.0\r\nHost: a\r\n\r\n",
    "no version": b"GET /livez\r\n\r\n",
    "two lengths": b"POST /v1/logits HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a long length": b"POST /v1/logits HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"0" * 5000 + b"\r\n\r\n",
    "LF alone": b"GET /livez HTTP/1.1\nHost: a\n\n",
    "LF alone after one header": b"GET /livez HTTP/1.1\r\nHost: a\r\nX: b\nY: c\r\n\r\n",
    "LF alone at the end": b"GET /livez HTTP/1.1\r\nHost: a\r\n\n",
    "space before the colon": b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello",
    "LF alone after a chunk": CHUNKED + b"\r\n1\na\r\n0\r\n\r\n",
    "no host": b"GET /livez HTTP/1.1\r\n\r\n",
    "two hosts": HEAD + b"Host: other\r\n\r\n",
    "a host that is none": b"GET /livez HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "two tokens": HEAD + b"Authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n",
    "two content types": HEAD + b"Content-Type: text/plain\r\nContent-Type: image/png\r\n\r\n",
    "two groups": HEAD + b"X-Lifelong-Group: 4711\r\nX-Lifelong-Group: 4712\r\n\r\n",
    "two request ids": HEAD + b"X-Lifelong-Request-Id: a\r\nX-Lifelong-Request-Id: a\r\n\r\n",
    "space before the colon of a host": b"GET /livez HTTP/1.1\r\nHost : a\r\n\r\n",
    "a tab in a name": HEAD + b"X-\tY: a\r\n\r\n",
    "NUL in a value": HEAD + b"X-Lifelong-Group: 4711\0\r\n\r\n",
    "a vertical tab in a value": HEAD + b"X-Lifelong-Group: 4711\x0b\r\n\r\n",
    "DEL in a value": HEAD + b"X-Lifelong-Group: 4711\x7f\r\n\r\n",
    "a folded value": HEAD + b"X-Lifelong-Group: 4711\r\n 4712\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_request_that_a_proxy_may_read_otherwise_is_refused(usual: Service, request_bytes: bytes) -> None:
    """And the connection closed: what follows must not be taken for a request."""
    received = answer(usual, request_bytes + FINISHED)
    assert received.count(b"HTTP/1.1 ") == 1
    assert status(received) in (400, 401)  # 401: nothing of the body was read
    assert b"200 OK" not in received
    assert b"x-content-type-options: nosniff" in received.lower()
    assert json.loads(received.partition(b"\r\n\r\n")[2])["error"]["hint"]


def test_a_request_in_pieces_is_read(usual: Service) -> None:
    with opened(usual) as connection:
        for byte in FINISHED:
            connection.sendall(bytes([byte]))
        assert status(read_answer(connection)) == 200


def test_the_worker_raises_its_limit_of_open_files(usual: Service) -> None:
    (worker,) = usual.workers()
    soft, hard = worker.rlimit(psutil.RLIMIT_NOFILE)
    assert soft >= min(3000, hard)
    assert "LIFELONG_MAXIMUM_CONNECTIONS" not in usual.log.read_text()


def test_with_few_files_there_are_fewer_connections(tmp_path: Path) -> None:
    installation = install(tmp_path)
    command = ("prlimit", "--nofile=400:400", *SERVICE)
    with running_service(tmp_path, installation.token, command=command, workers=1) as service:
        service.wait_until_ready()
        assert "at most 72 connections" in service.log.read_text()
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(opened(service, HEAD))
            assert service.send("GET", "/livez").status == 200


@pytest.mark.parametrize(
    "target",
    [
        "http://[",
        "//[/livez",
        "http://[::1/livez",
        "/%00%ff",
        "/\xff\xfe",
        "/livez?%ff=%zz",
        "*",
        "///[a",
        "//[/console",
    ],
    ids=range(9),  # two colons in a name are the end of a scope to pytest-xdist
)
@pytest.mark.parametrize("host", ["service", "[", "a:b:c", "]:99999"])
def test_malformed_urls_get_an_answer_and_leave_no_traceback(usual: Service, target: str, host: str) -> None:
    head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    received = answer(usual, head.encode("latin-1"))
    assert status(received) in (200, 400, 404)
    assert b"x-content-type-options: nosniff" in received.lower()
    assert "Traceback" not in usual.log.read_text()


def test_one_patient_is_one_group_by_whatever_way_its_key_comes(usual: Service) -> None:
    """And one request is one request: white space around a key is no part of it."""
    document = {"logits": [[1.0, 0.5, 2.0]], "model": "remote"}

    def sent(query: str = "", more: Mapping[str, object] | None = None, **headers: str) -> str:
        body = json.dumps(document | dict(more or {})).encode()
        reply = usual.send("POST", f"/v1/logits{query}", body, Content_Type="application/json", **headers)
        assert reply.status == 200, reply.content
        return reply.body["predictions"][0]["prediction_id"]

    first = sent(X_Lifelong_Group="4711", X_Lifelong_Request_Id="r-1")
    again = [
        sent(X_Lifelong_Group="4711 ", X_Lifelong_Request_Id="r-1\t"),
        sent("?group=%204711", X_Lifelong_Request_Id=" r-1 "),
        sent("?request_id=r-1%20", {"group": "4711\n"}),
        sent("", {"groups": [" 4711 "], "request_id": " r-1"}),
    ]
    assert set(again) <= {first}
    sent("", {"group": "47 11"})
    label = {"request_id": "r-1 ", "model": "remote", "label": 0}
    with usual.connect() as connection:
        assert connection.post_json("/v1/feedback", label).body["prediction_id"] == first
        erased = connection.post_json("/v1/admin/groups/erase", {"group": " 4711"})
    assert erased.body["predictions"] == 1, erased.content


def add_environment(service: Service, name: str, address: str, forwarded_for: str) -> str:
    """The source that the audit log has for a change from that address."""
    body = json.dumps({"name": name}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", service.port, source_address=(address, 0))
    headers = {
        "Authorization": f"Bearer {service.token}",
        "Content-Type": "application/json",
        "X-Forwarded-For": forwarded_for,
    }
    with closing(connection):
        connection.request("POST", "/v1/admin/environments", body, headers)
        assert connection.getresponse().status == 201
    (entry,) = service.send("GET", f"/v1/admin/audit?subject={name}").body["audit"]
    return entry["source"]


def test_only_a_trusted_proxy_says_who_the_client_is(service: Service) -> None:
    for index, forwarded in enumerate(("198.51.100.7", "192.0.2.66, 198.51.100.7", "192.0.2.66,127.0.0.9")):
        assert add_environment(service, f"direct-{index}", "127.0.0.1", forwarded) == "127.0.0.1"
    # The last address that the proxy does not answer for; clients may send the others themselves.
    assert add_environment(service, "one", "127.0.0.9", "198.51.100.7") == "198.51.100.7"
    assert add_environment(service, "two", "127.0.0.9", "192.0.2.66, 198.51.100.7") == "198.51.100.7"
    assert add_environment(service, "three", "127.0.0.9", "2001:db8::7, 127.0.0.9") == "2001:db8::7"
    assert add_environment(service, "four", "127.0.0.9", "<script>") == "unknown"


@pytest.mark.parametrize("part", [b"X-Y: a\r\n", b"a", b" "], ids=["headers", "one value", "spaces"])
def test_a_large_head_is_cut_off(usual: Service, part: bytes) -> None:
    before = closed(usual, "large_head")
    with opened(usual, HEAD + b"X: ") as connection:
        received = read_to_end(connection, drip=part * (20_000 // len(part)))
    assert status(received) == 431
    assert closed(usual, "large_head") == before + 1


CHUNKED = (
    b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    ("start", "part"),
    [
        (b"0\r\n", b"X: a\r\n"),
        (b"0\r\nX: ", b"a"),
        (b"1;", b"a"),
        (b"", b"1;" + b"a" * 98 + b"\r\nx\r\n"),
    ],
    ids=["trailers", "a trailer", "a chunk extension", "chunk extensions"],
)
def test_large_framing_is_cut_off(usual: Service, start: bytes, part: bytes) -> None:
    before = closed(usual, "large_head")
    head = CHUNKED % (usual.token or "").encode()
    with opened(usual, head + start) as connection:
        read_to_end(connection, drip=part * (20_000 // len(part)))
    assert closed(usual, "large_head") == before + 1


def test_small_chunks_are_no_framing_attack(usual: Service) -> None:
    head = CHUNKED % (usual.token or "").encode()
    picture = image()
    parts = b"".join(b"1\r\n" + picture[i : i + 1] + b"\r\n" for i in range(len(picture)))
    with opened(usual, head + parts + b"0\r\nX-Lifelong-Environment: other\r\n\r\n") as connection:
        connection.settimeout(PATIENCE_SECONDS)
        received = connection.recv(65536)
    assert status(received) == 200
    assert b'"environment":"default"' in received, "a trailer is no header"


def test_the_body_of_a_refused_request_is_no_head(usual: Service) -> None:
    head = b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    with opened(usual, head) as connection:
        connection.settimeout(PATIENCE_SECONDS)
        assert status(connection.recv(65536)) == 401
        connection.sendall(bytes(1_000_000) + FINISHED)
        assert read_answer(connection)
