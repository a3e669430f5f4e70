"""Counts of requests: as the library counts them one by one."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from lifelong_service import metrics
from lifelong_service.guard.request_counts import RequestCounts, _observe

BUCKETS = (0.005, 0.01, 0.1, 1.0)


def samples(histogram: Histogram) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("le", "")): sample.value
        for family in histogram.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@given(st.lists(st.sampled_from((0.0, *BUCKETS)) | st.floats(0, 5), max_size=20))
def test_observed_together_or_one_by_one(values: list[float]) -> None:
    together, single = (
        Histogram("seconds", "of requests", registry=CollectorRegistry(), buckets=BUCKETS) for _ in range(2)
    )
    _observe(together, values)
    for value in values:
        single.observe(value)
    assert samples(together) == pytest.approx(samples(single))


def test_counts_are_written_at_the_end_of_the_turn() -> None:
    route = "/test-of-counts"

    async def answer_two() -> None:
        counts = RequestCounts()
        counts.note(route, 200, 0.5)
        counts.note(route, 503, 0.25)
        await asyncio.sleep(0)
        counts.note(route, 200, 1.0)
        await asyncio.sleep(0)

    asyncio.run(answer_two())
    seconds, requests = metrics.REQUEST_SECONDS.labels(route), metrics.REQUESTS
    assert seconds._sum.get() == 1.75
    assert sum(bucket.get() for bucket in seconds._buckets) == 3
    assert [requests.labels(route, status)._value.get() for status in (200, 503)] == [2, 1]


def test_counting_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    route = "/test-after-an-error"
    failures = [OSError("no space left on the device")]

    def labels(*_: object) -> None:
        raise failures.pop()

    async def answer_two() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        counts = RequestCounts()
        with monkeypatch.context() as patched:
            patched.setattr(metrics.REQUESTS, "labels", labels)
            counts.note(route, 200, 0.5)
            await asyncio.sleep(0)
        assert failures == []
        counts.note(route, 200, 0.5)
        await asyncio.sleep(0)

    asyncio.run(answer_two())
    assert metrics.REQUESTS.labels(route, 200)._value.get() == 1
