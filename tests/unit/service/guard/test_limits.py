"""Limits over HTTP: 429 and 503 with Retry-After above them, answers below them."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lifelong_core.configuration.settings import TokenLimits
from lifelong_service import metrics
from tests.unit.service.conftest import Service, png

ROWS = [[1.0, 2.0, 0.5]] * 3


@pytest.fixture(params=[True, False], ids=["direct", "framework"])
def serve(request: pytest.FixtureRequest, serve: Callable[..., Service]) -> Callable[..., Service]:
    """Starts an application whose predictions bypass the framework, or pass it."""
    return partial(serve, bypasses=request.param)


def refused(limit: str, token: str) -> float:
    return metrics.REFUSED_REQUESTS.labels(limit, token)._value.get()


def test_a_token_above_its_rate_gets_429(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(token_limits=TokenLimits(requests_per_second=0.01))
    predict = service.header("predict")
    before = refused("requests_per_second", "predict-token")
    assert service.client.post("/v1/predict", content=png(), headers=predict).status_code == 200
    answer = service.client.post("/v1/logits", json={"logits": ROWS}, headers=predict)
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 100
    error = answer.json()["error"]
    assert error["code"] == "too_many_requests"
    assert "requests_per_second" in error["message"]
    assert refused("requests_per_second", "predict-token") == before + 1
    assert service.client.post("/v1/predict", content=png()).status_code == 200, "another token"
    assert service.client.get("/v1/admin/heads").status_code != 429


def test_rows_are_counted_not_requests(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(named_token_limits={"admin-token": TokenLimits(rows_per_minute=4)})
    assert service.client.post("/v1/logits", json={"logits": ROWS}).status_code == 200
    assert service.client.post("/v1/logits", json={"logits": ROWS}).status_code == 429
    assert service.client.post("/v1/predict", content=png()).status_code == 200
    assert service.logged() == 4


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    return threading.Event()


def hold_up(service: Service, gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    append = service.worker.log.append

    def slow(entries: Any) -> Any:
        gate.wait(10)
        return append(entries)

    monkeypatch.setattr(service.worker.log, "append", slow)


def test_requests_at_once_are_limited(
    registered: None, serve: Callable[..., Service], gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(token_limits=TokenLimits(concurrent_requests=2))
    hold_up(service, gate, monkeypatch)
    threading.Timer(0.3, gate.set).start()
    answers = service.client.post_all("/v1/predict", [png(value) for value in range(6)])
    assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429, 429]
    assert service.client.post("/v1/predict", content=png()).status_code == 200


def test_bodies_that_wait_are_limited(
    registered: None, serve: Callable[..., Service], gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(png())
    service = serve(maximum_held_body_bytes=4 * size)
    hold_up(service, gate, monkeypatch)
    threading.Timer(0.3, gate.set).start()
    answers = service.client.post_all("/v1/predict", [png()] * 6)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503, 503, 503]
    full = next(answer for answer in answers if answer.status_code == 503)
    assert full.json()["error"]["field"] == "body"
    assert full.headers["Retry-After"]
    assert service.worker.body_budget.held_bytes == 0


def test_a_body_without_a_length_is_counted_while_it_arrives(
    registered: None, serve: Callable[..., Service], gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(maximum_held_body_bytes=2000)
    with service.worker.body_budget.body("admin-token", 0) as held:
        held.add(1500)
        answer = service.client.post(
            "/v1/predict",
            content=_chunks([b"x" * 100]),
            headers={"Content-Type": "application/octet-stream"},
        )
    assert answer.status_code == 503
    assert answer.json()["error"]["field"] == "body"


async def _chunks(parts: list[bytes]) -> Any:
    for part in parts:
        yield part


def test_a_client_that_has_gone_leaves_the_queue(
    registered: None, serve: Callable[..., Service], gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve()
    hold_up(service, gate, monkeypatch)
    batcher = service.worker.batcher
    for _ in range(2):
        batcher._rate.note(0.2, 1)
    client, statuses = service.client, list[int]()
    body = png()
    headers = {**client.headers, "content-type": "image/png", "content-length": str(len(body))}
    scope = {
        "type": "http",
        "http_version": "1.0",  # which needs no Host
        "method": "POST",
        "scheme": "http",
        "path": "/v1/predict",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    async def request(*messages: Any) -> None:
        rest = iter(messages)

        async def receive() -> Any:
            return next(rest, None) or await asyncio.Event().wait()

        await client.app(dict(scope), receive, send)

    async def scenario() -> None:
        arrived = {"type": "http.request", "body": body, "more_body": False}
        working = asyncio.create_task(request(arrived))
        while not batcher.busy_seconds:
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(request(arrived))
        while not batcher.queue_length:
            await asyncio.sleep(0.001)
        await request(arrived, {"type": "http.disconnect"})
        gate.set()
        await asyncio.gather(working, waiting)

    client.run(scenario())
    assert [status for status in statuses if status] == [200, 200]
    assert service.logged() == 2
