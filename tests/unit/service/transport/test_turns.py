"""The order in which requests start."""

import asyncio

import pytest

from lifelong_service.transport.turns import Turns
from tests.unit.service.waiting import in_event_loop

FLOOD = 200


def flood(turns: Turns, index: int, started: list[str], *, is_later: bool = True) -> None:
    """Another connection of one client."""
    turns.take("flood", index, lambda: started.append(f"flood {index}"), is_later=is_later)


@in_event_loop
async def test_a_flood_of_later_requests_lets_the_others_pass() -> None:
    turns, started = Turns(), list[str]()
    for index in range(FLOOD):
        flood(turns, index, started)
    for index in range(20):
        turns.take("a", index, lambda index=index: started.append(f"first {index}"), is_later=False)
    for _ in range(3):
        await asyncio.sleep(0)
    turns.take("a", "last", lambda: started.append("last"), is_later=False)
    await asyncio.sleep(0)
    assert [one for one in started if "flood" not in one] == [*(f"first {i}" for i in range(20)), "last"]
    assert len(started) < 30
    while len(started) < FLOOD + 21:
        await asyncio.sleep(0)
    assert [one for one in started if "flood" in one] == [f"flood {index}" for index in range(FLOOD)]


@in_event_loop
async def test_a_request_of_an_idle_worker_starts_at_once() -> None:
    turns, started = Turns(), list[str]()
    for name in ("first", "second"):
        turns.take("a", name, lambda name=name: started.append(name), is_later=True)
        assert started[-1] == name
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.mark.parametrize("is_later", [False, True])
@in_event_loop
async def test_clients_take_turns(*, is_later: bool) -> None:
    turns, started = Turns(), list[str]()
    for index in range(FLOOD):
        flood(turns, index, started, is_later=is_later)
    turns.take("a", 1, lambda: started.append("other"), is_later=is_later)
    while "other" not in started:
        await asyncio.sleep(0)
    assert len(started) < 20
    while len(started) < FLOOD + 1:
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_later", [False, True])
@in_event_loop
async def test_closed_connections_take_no_turns(*, is_later: bool) -> None:
    turns, started = Turns(), list[str]()
    for index in range(FLOOD):
        flood(turns, index, started, is_later=is_later)
    flood(turns, FLOOD, started, is_later=is_later)
    for index in range(FLOOD):
        turns.leave("flood", index)
    for _ in range(3):
        await asyncio.sleep(0)
    assert started == ["flood 0", f"flood {FLOOD}"]
    flood(turns, 0, started)
    assert started[-1] == "flood 0"
