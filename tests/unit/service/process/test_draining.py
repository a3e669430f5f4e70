"""The end of a worker: running requests are answered in time, and the server gets the signal a little later."""

import asyncio
import os
import signal
import time

from starlette.types import Message, Receive, Scope, Send

from lifelong_service.guard.middleware import RequestMiddleware
from lifelong_service.process.draining import Draining
from tests.unit.service.waiting import in_event_loop


def draining(**seconds: float) -> Draining:
    return Draining(lambda: None, **{"listening_seconds": 0.05, "seconds": 0.1} | seconds)


async def answer_of(app: RequestMiddleware) -> tuple[int, dict[bytes, bytes], bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"host", b"service")]
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/predict",
        "headers": headers,
    }
    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(30)


async def quick(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


@in_event_loop
async def test_requests_under_way_end_before_the_server_cuts_them_off() -> None:
    end = draining()
    app = RequestMiddleware(slow, timeout_seconds=20, worker="1", draining=end)
    early = asyncio.create_task(answer_of(app))
    await asyncio.sleep(0)
    end.hurry()
    end.hurry()
    for answer in (early, asyncio.create_task(answer_of(app))):
        status, headers, body = await asyncio.wait_for(answer, 5)
        assert status == 503
        assert headers[b"retry-after"] == b"1"
        assert b"stops" in body
    end.hurry()  # after the last request


@in_event_loop
async def test_answers_close_their_connections_only_then() -> None:
    end = draining(seconds=10)
    app = RequestMiddleware(quick, timeout_seconds=20, worker="1", draining=end)
    assert b"connection" not in (await answer_of(app))[1]
    end.hurry()
    status, headers, body = await answer_of(app)
    assert (status, headers[b"connection"], body) == (200, b"close", b"done")


def test_a_limit_that_is_nearer_stays() -> None:
    async def scenario() -> float:
        end = draining(seconds=20)
        app = RequestMiddleware(slow, timeout_seconds=0.05, worker="1", draining=end)
        began = time.monotonic()
        answer = asyncio.create_task(answer_of(app))
        await asyncio.sleep(0)
        end.hurry()
        assert (await answer)[0] == 503
        return time.monotonic() - began

    assert asyncio.run(scenario()) < 10


def test_the_server_hears_of_the_signal_after_the_pause() -> None:
    heard: list[tuple[str, float]] = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(("server", time.monotonic())))

    async def scenario() -> None:
        end = Draining(lambda: heard.append(("worker", time.monotonic())), listening_seconds=0.2, seconds=1)
        end.start()
        assert not end.has_begun
        os.kill(os.getpid(), signal.SIGTERM)
        while len(heard) < 2:
            await asyncio.sleep(0.001)
        assert end.has_begun

    try:
        asyncio.run(asyncio.wait_for(scenario(), 10))
    finally:
        signal.signal(signal.SIGTERM, before)
    (first, begun), (second, told) = heard
    assert (first, second) == ("worker", "server")
    assert told - begun > 0.15


def test_without_a_handler_of_the_server_nothing_is_changed() -> None:
    async def scenario() -> None:
        draining().start()

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        asyncio.run(scenario())
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
