"""Files of a process, which bound its connections."""

import logging
import resource

import pytest

from lifelong_service.transport import server


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
