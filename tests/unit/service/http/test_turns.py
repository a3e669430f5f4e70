"""The order in which requests start."""

import asyncio

from lifelong_service.http.turns import Turns

FLOOD = 200


def test_a_flood_of_later_requests_lets_the_others_pass() -> None:
    async def scenario() -> None:
        turns, started = Turns(), list[str]()
        for index in range(FLOOD):
            turns.take(lambda index=index: started.append(f"flood {index}"), is_later=True)
        for index in range(20):
            turns.take(lambda index=index: started.append(f"first {index}"), is_later=False)
        for _ in range(3):
            await asyncio.sleep(0)
        turns.take(lambda: started.append("last"), is_later=False)
        await asyncio.sleep(0)
        assert [one for one in started if "flood" not in one] == [*(f"first {i}" for i in range(20)), "last"]
        assert len(started) < 30
        while len(started) < FLOOD + 21:
            await asyncio.sleep(0)
        assert [one for one in started if "flood" in one] == [f"flood {index}" for index in range(FLOOD)]

    asyncio.run(scenario())


def test_a_request_of_an_idle_worker_starts_at_once() -> None:
    async def scenario() -> None:
        turns, started = Turns(), list[str]()
        for name in ("first", "second"):
            turns.take(lambda name=name: started.append(name), is_later=True)
            assert started[-1] == name
            for _ in range(3):
                await asyncio.sleep(0)

    asyncio.run(scenario())
