"""Memory is returned once after large bodies, and not after others."""

import asyncio
import json
import threading
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from lifelong_service.bodies import parsing
from lifelong_service.bodies.parsing import LARGE_BODY, LARGE_PARSED_BODY, MemoryRelease
from tests.unit.service.conftest import Service, png
from tests.unit.service.waiting import eventually


class Counting(Executor):
    """Counts what is to be done."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, *arguments: Any, **named: Any) -> "Future[Any]":  # noqa: ARG002 - the signature of Executor
        self.submitted += 1
        return Future()


@pytest.mark.parametrize(
    ("received", "is_parsed", "expected"),
    [
        (LARGE_PARSED_BODY, True, 0),
        (LARGE_PARSED_BODY + 1, True, 1),
        (LARGE_BODY, False, 0),
        (LARGE_BODY + 1, False, 1),
    ],
)
def test_after_several_large_bodies_once(
    received: int, *, is_parsed: bool, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "PAUSE_SECONDS", 0.0)
    executor = Counting()

    async def several() -> None:
        release = MemoryRelease(executor)
        for _ in range(3):
            release.note(received, is_parsed=is_parsed)
        await asyncio.sleep(0.05)
        release.note(1, is_parsed=is_parsed)
        await asyncio.sleep(0.05)

    asyncio.run(several())
    assert executor.submitted == expected


def test_a_loop_that_ends_before_its_time_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Counting()
    release = MemoryRelease(executor)

    async def once(pause: float) -> None:
        monkeypatch.setattr(parsing, "PAUSE_SECONDS", pause)
        release.note(LARGE_BODY + 1, is_parsed=False)
        await asyncio.sleep(0.05)

    asyncio.run(once(60.0))
    asyncio.run(once(0.0))
    assert executor.submitted == 1


def test_a_request_with_a_large_body_is_noted(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    given_back = threading.Event()
    monkeypatch.setattr(parsing, "give_back_free_memory", given_back.set)
    assert parsing.MEMORY_RELEASE is not None
    assert service.client.post("/v1/predict", content=png(9)).status_code == 200
    large = json.dumps({"logits": [[0.1234567890123, 1.0, 2.0]] * 6000}).encode()
    assert len(large) > LARGE_PARSED_BODY
    assert not given_back.is_set()
    reply = service.client.post("/v1/logits", content=large, headers={"Content-Type": "application/json"})
    assert reply.status_code == 200
    eventually(given_back.is_set)
