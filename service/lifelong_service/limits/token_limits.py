"""Limits of each token at one worker: rate of requests, rate of rows, and simultaneous requests."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lifelong_core.configuration.settings import TokenLimits
from lifelong_core.values.errors import TooManyRequestsError
from lifelong_service import metrics
from lifelong_service.limits.token_bucket import TokenBucket

LATER_SECONDS = 1
"""Retry-After for too many simultaneous requests, whose duration is unknown."""


@dataclass
class _Usage:
    """The remaining allowance of one token; a request is active while it is entered."""

    limits: TokenLimits
    requests: TokenBucket | None
    rows: TokenBucket | None
    active: int = 0

    def __enter__(self) -> None:
        self.active += 1

    def __exit__(self, *_: object) -> None:
        self.active -= 1


class TokenLimiter:
    """Counts by the names of tokens, which bounds its memory. Used in the event loop only.

    Args:
        limits: returns the limits of the token with a name.
        clock: seconds, monotonic.
    """

    def __init__(
        self, limits: Callable[[str], TokenLimits], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._usages: dict[str, _Usage] = {}

    def request(self, token: str) -> AbstractContextManager[None]:
        """Count one request of this token until the block of the result ends.

        Raises:
            TooManyRequestsError: its rate or its number of simultaneous requests is above the limit.
        """
        usage = self._usage(token)
        most = usage.limits.concurrent_requests
        if most is not None and usage.active >= most:
            raise _exceeded(
                token, "concurrent_requests", f"{most} simultaneous requests per worker", LATER_SECONDS
            )
        rate = usage.limits.requests_per_second
        if usage.requests is not None and (wait := usage.requests.take(1, now=self._clock())):
            raise _exceeded(token, "requests_per_second", f"{rate:g} requests per second and worker", wait)
        return usage

    def take_rows(self, token: str, rows: int) -> None:
        """Count the rows (images, or rows of logits) of one request.

        Raises:
            TooManyRequestsError: they are more than the token has left.
        """
        usage = self._usage(token)
        if usage.rows is not None and (wait := usage.rows.take(rows, now=self._clock())):
            most = usage.limits.rows_per_minute
            raise _exceeded(token, "rows_per_minute", f"{most} rows per minute and worker", wait)

    def _usage(self, token: str) -> _Usage:
        usage = self._usages.get(token)
        if usage is None:
            usage = self._usages[token] = _usage_of(self._limits(token), now=self._clock())
        return usage


def _usage_of(limits: TokenLimits, *, now: float) -> _Usage:
    requests, rows = limits.requests_per_second, limits.rows_per_minute
    return _Usage(
        limits,
        requests=None if requests is None else TokenBucket(rate=requests, burst=max(1.0, requests), now=now),
        rows=None if rows is None else TokenBucket(rate=rows / 60, burst=rows, now=now),
    )


def _exceeded(token: str, limit: str, allowed: str, wait: float) -> TooManyRequestsError:
    metrics.REFUSED_REQUESTS.labels(limit, token).inc()
    if math.isinf(wait):
        hint = "Send fewer rows in one request: these are more than a whole minute allows."
        wait = 60
    else:
        hint = (
            "Try again after the seconds in Retry-After, or have the operators raise the limit of this token."
        )
    return TooManyRequestsError(
        f"the token {token!r} may send {allowed} ({limit}).",
        field="Authorization",
        hint=hint,
        retry_after_seconds=max(1, math.ceil(wait)),
    )
