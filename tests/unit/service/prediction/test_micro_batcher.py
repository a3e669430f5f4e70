"""The micro-batcher: waiting requests form batches, each gets its own answer, none waits for ever."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from lifelong_core.values.errors import InvalidInputError, UnavailableError
from lifelong_service.prediction.micro_batcher import BATCHES_AHEAD, MicroBatcher
from tests.unit.service.waiting import in_event_loop


class Recorder:
    """Doubles numbers, fails on negative ones, and keeps the batches that it saw; `gate` holds it up."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.entered = threading.Event()

    def __call__(self, requests: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(requests))
        self.entered.set()
        self.gate.wait(10)
        return [InvalidInputError("negative") if request < 0 else 2 * request for request in requests]


def batcher(process: Recorder, capacity: int = 100, maximum: int = 4) -> MicroBatcher[int, int]:
    made: MicroBatcher[int, int] = MicroBatcher(process, capacity=capacity, maximum_samples=maximum)
    made.start()
    return made


class Doubling:
    """Prepares numbers by doubling them; holds the first call up until `gate` is set, and fails on 13."""

    def __init__(self, *, samples: int = 1) -> None:
        self.samples = samples
        self.gate = threading.Event()
        self.begun: list[int] = []
        self.prepared: list[int] = []

    def __call__(self, request: int) -> tuple[int, int]:
        self.begun.append(request)
        self.gate.wait(10)
        if request == 13:
            raise ValueError("13")
        self.prepared.append(request)
        return 2 * request, self.samples


def preparing(
    process: Recorder, prepare: Doubling, *, maximum: int = 4, threads: int = 1, capacity: int = 100
) -> MicroBatcher[int, int]:
    made: MicroBatcher[int, int] = MicroBatcher(
        process,
        capacity=capacity,
        maximum_samples=maximum,
        prepare=prepare,
        preparing_threads=threads,
    )
    made.start()
    return made


async def held_up(made: MicroBatcher[int, int], process: Recorder) -> "asyncio.Task[int]":
    """A first request that the thread works on, so that all later ones wait."""
    task = asyncio.create_task(made.submit(0))
    await asyncio.to_thread(process.entered.wait, 10)
    return task


@in_event_loop
async def test_what_waits_is_taken_together_up_to_the_limit() -> None:
    process = Recorder()
    made = batcher(process)
    first = await held_up(made, process)
    later = [asyncio.create_task(made.submit(request)) for request in range(1, 7)]
    await asyncio.sleep(0)
    assert made.queue_length == 6
    process.gate.set()
    assert await asyncio.gather(first, *later) == [0, 2, 4, 6, 8, 10, 12]
    assert process.batches == [[0], [1, 2, 3, 4], [5, 6]]
    made.close()


@in_event_loop
async def test_the_length_of_the_queue_is_told() -> None:
    process, lengths = Recorder(), list[int]()
    made: MicroBatcher[int, int] = MicroBatcher(process, capacity=9, maximum_samples=2, watch=lengths.append)
    made.start()
    first = await held_up(made, process)
    later = [asyncio.create_task(made.submit(request)) for request in range(3)]
    await asyncio.sleep(0)
    process.gate.set()
    await asyncio.gather(first, *later)
    assert lengths == [1, 0, 1, 2, 3, 1, 0]
    made.close()


@in_event_loop
async def test_a_batch_counts_samples_and_a_large_job_goes_alone() -> None:
    process = Recorder()
    made = batcher(process)
    first = await held_up(made, process)
    sizes = {1: 3, 2: 2, 3: 9, 4: 1}
    later = [asyncio.create_task(made.submit(request, samples=size)) for request, size in sizes.items()]
    await asyncio.sleep(0)
    process.gate.set()
    await asyncio.gather(first, *later)
    assert process.batches == [[0], [1], [2], [3], [4]]
    made.close()


def test_one_bad_job_fails_alone() -> None:
    async def scenario() -> list[int | BaseException]:
        process = Recorder()
        made = batcher(process)
        first = await held_up(made, process)
        later = [asyncio.create_task(made.submit(request)) for request in (1, -1, 3)]
        await asyncio.sleep(0)
        process.gate.set()
        results = await asyncio.gather(first, *later, return_exceptions=True)
        made.close()
        return results

    results = asyncio.run(scenario())
    assert [results[0], results[1], results[3]] == [0, 2, 6]
    assert isinstance(results[2], InvalidInputError)


@in_event_loop
async def test_a_full_queue_turns_away() -> None:
    process = Recorder()
    made = batcher(process, capacity=2)
    first = await held_up(made, process)
    waiting = [asyncio.create_task(made.submit(request)) for request in (1, 2)]
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError) as caught:
        await made.submit(3)
    assert caught.value.retry_after_seconds >= 1
    process.gate.set()
    assert await asyncio.gather(first, *waiting) == [0, 2, 4]
    made.close()


@in_event_loop
async def test_closing_answers_what_waits_and_takes_nothing_more() -> None:
    process = Recorder()
    made = batcher(process)
    first = await held_up(made, process)
    waiting = [asyncio.create_task(made.submit(request)) for request in range(1, 10)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(asyncio.to_thread(made.close))
    while made.alive:
        await asyncio.sleep(0.001)
    with pytest.raises(UnavailableError):
        await made.submit(99)
    process.gate.set()
    await closing
    assert await asyncio.gather(first, *waiting) == [2 * request for request in range(10)]


def test_the_thread_survives_a_fault_of_the_process() -> None:
    def faulty(requests: Sequence[int]) -> list[int | Exception]:
        if 13 in requests:
            raise ZeroDivisionError
        return [] if 14 in requests else list(requests)

    async def scenario() -> None:
        made: MicroBatcher[int, int] = MicroBatcher(faulty, capacity=9, maximum_samples=9)
        made.start()
        with pytest.raises(ZeroDivisionError):
            await made.submit(13)
        with pytest.raises(RuntimeError, match="0 answers for 1 requests"):
            await made.submit(14)
        assert await made.submit(1) == 1
        assert made.alive
        made.close()

    asyncio.run(scenario())


@in_event_loop
async def test_jobs_that_were_given_up_are_not_worked_on() -> None:
    process = Recorder()
    made = batcher(process)
    first = await held_up(made, process)
    given_up, kept = (asyncio.create_task(made.submit(request)) for request in (1, 2))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.sleep(0)
    process.gate.set()
    assert await asyncio.gather(first, kept) == [0, 4]
    assert process.batches == [[0], [2]]
    made.close()


class Slow:
    """Takes a fixed time for every request."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.sizes: list[int] = []

    def __call__(self, requests: Sequence[int]) -> list[int | Exception]:
        self.sizes.append(len(requests))
        time.sleep(self.seconds * len(requests))
        return list(requests)


async def outcomes(made: MicroBatcher[int, int], owner: str, count: int) -> list[str]:
    """What became of so many requests that are submitted at once."""
    tasks = [made.submit(request, owner=owner) for request in range(count)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    return ["refused" if isinstance(result, UnavailableError) else "answered" for result in results]


@in_event_loop
async def test_what_would_wait_too_long_is_refused_at_once() -> None:
    process = Slow(0.01)
    made: MicroBatcher[int, int] = MicroBatcher(
        process, capacity=1000, maximum_samples=64, maximum_wait_seconds=0.4, maximum_batch_seconds=0.1
    )
    made.start()
    for request in range(3):  # the rate is measured
        await made.submit(request)
    process.sizes.clear()
    found = await outcomes(made, "greedy", 200)
    answered = found.count("answered")
    assert 0 < answered <= 60, "half of 0.4 s, at 10 ms for each, and what leaves the queue meanwhile"
    assert found[0] == "answered"
    assert max(process.sizes) <= 10, "a batch takes at most 0.1 s"
    made.close()


@in_event_loop
async def test_another_owner_finds_room_beside_a_greedy_one() -> None:
    made: MicroBatcher[int, int] = MicroBatcher(
        Slow(0.01), capacity=1000, maximum_samples=64, maximum_wait_seconds=0.4
    )
    made.start()
    for request in range(3):
        await made.submit(request)
    greedy = asyncio.create_task(outcomes(made, "greedy", 200))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await outcomes(made, "modest", 2) == ["answered", "answered"]
    assert "refused" in await greedy
    made.close()


@in_event_loop
async def test_who_has_nothing_in_the_queue_is_refused_last() -> None:
    process = Recorder()
    made: MicroBatcher[int, int] = MicroBatcher(
        process, capacity=9, maximum_samples=9, maximum_wait_seconds=20
    )
    made.start()
    for _ in range(2):
        made._rate.note(15, 1)  # the machine has become slower than it was when the first one was taken
    first = await held_up(made, process)
    waiting = [asyncio.create_task(made.submit(1, owner="greedy"))]
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError) as caught:
        made.check_room("greedy")
    assert 20 < caught.value.retry_after_seconds <= 30
    waiting.append(asyncio.create_task(made.submit(2, owner="modest")))
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError):
        made.check_room("third")
    process.gate.set()
    assert await asyncio.gather(first, *waiting) == [0, 2, 4]
    made.close()


@in_event_loop
async def test_one_slow_batch_refuses_nothing() -> None:
    """As when the database is waited for, or the first one of a process."""

    process = Slow(0.3)
    made: MicroBatcher[int, int] = MicroBatcher(
        process, capacity=1000, maximum_samples=64, maximum_wait_seconds=0.5
    )
    made.start()
    await made.submit(0)
    process.seconds = 0.0001
    assert set(await outcomes(made, "a", 100)) == {"answered"}
    made.close()


@pytest.mark.parametrize("needs_preparation", [False, True])
@pytest.mark.parametrize("is_prepared", [False, True])
@in_event_loop
async def test_what_is_given_up_leaves_the_queue_at_once(
    *, needs_preparation: bool, is_prepared: bool
) -> None:
    process, prepare = Recorder(), Doubling()
    if is_prepared:
        prepare.gate.set()
    made = preparing(process, prepare, capacity=4)
    first = await held_up(made, process)
    tasks = [
        asyncio.create_task(made.submit(request, preparation_samples=int(needs_preparation)))
        for request in range(1, 5)
    ]
    taken = int(needs_preparation)
    await asyncio.to_thread(_eventually, lambda: len(prepare.begun) == (4 if is_prepared else 1) * taken)
    with pytest.raises(UnavailableError, match="4 requests are waiting"):
        made.check_room("")
    for task in tasks[1:]:
        task.cancel()
    await asyncio.wait(tasks[1:])
    assert made.queue_length == 1
    last = asyncio.create_task(made.submit(5, preparation_samples=int(needs_preparation)))
    await asyncio.sleep(0)
    process.gate.set()
    prepare.gate.set()
    factor = 4 if needs_preparation else 2
    assert await asyncio.gather(first, tasks[0], last) == [0, factor, 5 * factor]
    assert made.expected_wait_seconds == 0
    made.close()


@in_event_loop
async def test_a_request_in_preparation_does_not_hold_up_others() -> None:
    process, prepare = Recorder(), Doubling()
    process.gate.set()
    made = preparing(process, prepare)
    slow = asyncio.create_task(made.submit(5, preparation_samples=1))
    await asyncio.sleep(0)
    assert await made.submit(1) == 2
    assert made.queue_length == 1
    prepare.gate.set()
    assert await slow == 20
    assert process.batches == [[1], [10]]
    made.close()


@pytest.mark.parametrize("threads", [1, 3])
@in_event_loop
async def test_every_request_is_prepared_once_and_answered(threads: int) -> None:
    process, prepare = Recorder(), Doubling()
    process.gate.set()
    prepare.gate.set()
    made = preparing(process, prepare, threads=threads)
    requests = range(100)
    answers = await asyncio.gather(
        *(made.submit(one, preparation_samples=1 - one % 2) for one in requests if one != 13)
    )
    assert answers == [4 * one if one % 2 == 0 else 2 * one for one in requests if one != 13]
    assert sorted(prepare.prepared) == list(range(0, 100, 2))
    made.close()


@in_event_loop
async def test_requests_are_prepared_only_some_batches_ahead() -> None:
    process, prepare = Recorder(), Doubling()
    prepare.gate.set()
    made = preparing(process, prepare, maximum=2)
    first = await held_up(made, process)
    later = [asyncio.create_task(made.submit(one, preparation_samples=1)) for one in range(1, 10)]
    await asyncio.to_thread(_eventually, lambda: len(prepare.prepared) == 2 * BATCHES_AHEAD)
    await asyncio.sleep(0.05)
    assert prepare.prepared == [1, 2, 3, 4], "two batches of two samples"
    process.gate.set()
    assert await asyncio.gather(first, *later) == [0, *(4 * one for one in range(1, 10))]
    made.close()


@pytest.mark.parametrize("is_closing", [False, True])
@in_event_loop
async def test_preparation_goes_on_when_all_that_was_prepared_is_given_up(is_closing: bool) -> None:
    process, prepare = Recorder(), Doubling()
    prepare.gate.set()
    made = preparing(process, prepare, maximum=2)
    first = await held_up(made, process)
    ahead = 2 * BATCHES_AHEAD
    later = [asyncio.create_task(made.submit(one, preparation_samples=1)) for one in range(1, ahead + 4)]
    await asyncio.to_thread(_eventually, lambda: len(prepare.prepared) == ahead)
    closing = asyncio.to_thread(made.close)
    if is_closing:
        closing = asyncio.create_task(closing)
        await asyncio.to_thread(_eventually, lambda: not made.alive)
    for given_up in later[:ahead]:
        given_up.cancel()
    await asyncio.sleep(0)
    process.gate.set()
    kept = asyncio.gather(first, *later[ahead:])
    assert await asyncio.wait_for(kept, 10) == [0, *(4 * one for one in range(ahead + 1, ahead + 4))]
    await closing


@pytest.mark.parametrize("is_closing", [False, True])
@in_event_loop
async def test_preparation_goes_on_when_what_was_in_preparation_is_given_up(*, is_closing: bool) -> None:
    """The one that was given up fills all the room of prepared requests, and no batch contains it."""

    process, prepare = Recorder(), Doubling(samples=4 * BATCHES_AHEAD)
    process.gate.set()
    made = preparing(process, prepare, maximum=4)
    given_up = asyncio.create_task(made.submit(1, preparation_samples=4 * BATCHES_AHEAD))
    await asyncio.to_thread(_eventually, lambda: prepare.begun == [1])
    kept = asyncio.create_task(made.submit(2, preparation_samples=1))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.sleep(0)
    closing = asyncio.create_task(asyncio.to_thread(made.close)) if is_closing else None
    prepare.gate.set()
    assert await asyncio.wait_for(kept, 10) == 8
    await (closing or asyncio.to_thread(made.close))


@in_event_loop
async def test_a_request_counts_in_a_batch_by_what_its_preparation_found() -> None:
    process, prepare = Recorder(), Doubling(samples=2)
    prepare.gate.set()
    made = preparing(process, prepare, maximum=4)
    first = await held_up(made, process)
    later = [asyncio.create_task(made.submit(one, samples=400, preparation_samples=1)) for one in (1, 2, 3)]
    await asyncio.to_thread(_eventually, lambda: len(prepare.prepared) == 3)
    process.gate.set()
    assert await asyncio.gather(first, *later) == [0, 4, 8, 12]
    assert process.batches == [[0], [2, 4], [6]]
    made.close()


@in_event_loop
async def test_what_costs_nothing_does_not_lower_the_measured_rate() -> None:
    """Otherwise wrong images would switch the protection against overload off."""

    process = Recorder()
    process.gate.set()
    made = batcher(process)
    for _ in range(4):
        await made.submit(1)
    rate = made._rate.seconds_per_sample
    for _ in range(40):
        with pytest.raises(InvalidInputError):
            await made.submit(-1, samples=0)
    assert made._rate.seconds_per_sample == rate
    made.close()


def test_a_failed_preparation_leaves_the_request_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        process, prepare = Recorder(), Doubling()
        process.gate.set()
        prepare.gate.set()
        made = preparing(process, prepare)
        assert await made.submit(13, preparation_samples=1) == 26
        assert await made.submit(1, preparation_samples=1) == 4
        made.close()

    asyncio.run(scenario())
    assert "could not be prepared" in caplog.text


@in_event_loop
async def test_a_closing_batcher_answers_what_is_in_preparation() -> None:
    process, prepare = Recorder(), Doubling()
    process.gate.set()
    made = preparing(process, prepare)
    tasks = [asyncio.create_task(made.submit(one, preparation_samples=1)) for one in (1, 2, 3)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.sleep(0)
    closing = asyncio.create_task(asyncio.to_thread(made.close))
    await asyncio.sleep(0.05)
    prepare.gate.set()
    assert [await tasks[0], await tasks[1]] == [4, 8]
    await closing


def _eventually(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.005)
