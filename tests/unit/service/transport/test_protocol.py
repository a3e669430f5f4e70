"""What the connections of a worker take from uvicorn, the kernel and the process."""

import logging
import resource
import socket
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from lifelong_service.transport import protocol, server

PROJECT = Path(__file__).resolve().parents[4] / "pyproject.toml"
METHODS = {"_start_asgi_task", "_unset_keepalive_if_required"}
ATTRIBUTES = {
    *("access_log", "app", "client", "cycle", "flow", "headers", "loop", "parser", "pipeline"),
    *("timeout_keep_alive", "transport", "ws_protocol_class"),
}
CYCLE = {
    *("body", "disconnected", "message_event", "more_body", "response_complete", "response_started"),
    *("scope", "waiting_for_100_continue"),
}


def test_only_versions_of_uvicorn_are_permitted_that_have_the_private_names() -> None:
    """Uvicorn promises none of them: before another version is permitted, compare its source with `LimitedProtocol`."""
    dependencies = map(Requirement, tomllib.loads(PROJECT.read_text())["project"]["dependencies"])
    permitted = next(one.specifier for one in dependencies if one.name == "uvicorn")
    assert version("uvicorn") in permitted
    assert "0.44.0" not in permitted, "it has no _start_asgi_task"
    assert any(bound.operator == "<" for bound in permitted)
    assert vars(HttpToolsProtocol).keys() >= METHODS
    assert {*HttpToolsProtocol.__init__.__code__.co_names} >= ATTRIBUTES
    assert {*RequestResponseCycle.__init__.__code__.co_names} >= CYCLE
    assert "url" in HttpToolsProtocol.on_message_begin.__code__.co_names
    assert "auto" in HTTP_PROTOCOLS


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux only")
def test_the_kernel_gives_up_answers_that_nobody_reads() -> None:
    with socket.socket() as connection:
        protocol._give_up_unread_answers(connection)
        seconds = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
    assert seconds == protocol.UNREAD_SECONDS


def test_a_unix_socket_has_no_such_option() -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        protocol._give_up_unread_answers(connection)


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "raised_to"),
    [
        (1024, 524_288, 1000, 1000 + 2048 + server.OTHER_FILES),
        (1024, resource.RLIM_INFINITY, 1000, 1000 + 2048 + server.OTHER_FILES),
        (100_000, 100_000, 1000, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 1000, None),
        (1024, 1024, (1024 - server.OTHER_FILES) // 2, 1024),
        (100, 100, 1, 100),
    ],
)
def test_files_are_reserved_for_all_connections(  # noqa: PLR0913, RUF100
    soft: int,
    hard: int,
    connections: int,
    raised_to: int | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    with caplog.at_level(logging.WARNING):
        assert server._reserve_files(1000) == connections
    assert raised == ([] if raised_to is None else [(raised_to, hard)])
    assert bool(caplog.records) == (connections < 1000)
