"""Metrics of answered requests: one increment per series and turn of the event loop, in which a batch is answered."""

import asyncio
from collections import Counter
from functools import cache

from prometheus_client import Histogram

from lifelong_service import metrics


class RequestCounts:
    """Counts requests by route and status. Used in the event loop only."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, int | str]]()

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
        _seconds_of(route).observe(seconds)

    def _flush(self) -> None:
        for (route, status), number in self._counts.items():
            metrics.REQUESTS.labels(route, status).inc(number)
        self._counts.clear()


@cache
def _seconds_of(route: str) -> Histogram:
    return metrics.REQUEST_SECONDS.labels(route)
