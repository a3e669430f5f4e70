"""Metrics of answered requests: one increment per series and turn of the event loop, in which a batch is answered."""

import asyncio
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache

from prometheus_client import Histogram

from lifelong_service import metrics


class RequestCounts:
    """Counts requests by route and status. Used in the event loop only."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, int | str]]()
        self._seconds = defaultdict[str, list[float]](list)

    def note(self, route: str, status: int | str, seconds: float) -> None:
        """Count one request.

        Args:
            route: path of its route.
            status: of its answer, or `metrics.NO_ANSWER`.
            seconds: from its start to the end of the answer.
        """
        if not self._counts:
            asyncio.get_running_loop().call_soon(self._flush)
        self._counts[route, status] += 1
        self._seconds[route].append(seconds)

    def _flush(self) -> None:
        counts, self._counts = self._counts, Counter[tuple[str, int | str]]()
        all_seconds, self._seconds = self._seconds, defaultdict[str, list[float]](list)
        for (route, status), number in counts.items():
            metrics.REQUESTS.labels(route, status).inc(number)
        for route, seconds in all_seconds.items():
            _observe(_seconds_of(route), seconds)


@cache
def _seconds_of(route: str) -> Histogram:
    return metrics.REQUEST_SECONDS.labels(route)


def _observe(histogram: Histogram, values: Sequence[float]) -> None:
    """As `histogram.observe` for each value, with one increment per bucket: each locks and writes a shared file.

    The library has no such function; a test compares both.
    """
    bounds = histogram._upper_bounds  # pyright: ignore[reportPrivateUsage]
    for place, number in Counter(bisect_left(bounds, value) for value in values).items():
        histogram._buckets[place].inc(number)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    histogram._sum.inc(sum(values))  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
