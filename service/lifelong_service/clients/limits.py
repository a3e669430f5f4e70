"""Limits of each client at one worker: requests, rows and streams of a token; failed logins of an address."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from lifelong_core.configuration.settings import TokenLimits
from lifelong_core.values.errors import TooManyRequestsError, UnavailableError
from lifelong_service import metrics
from lifelong_service.clients.addresses import ANONYMOUS, network_of
from lifelong_service.clients.sharing import TokenBucket

LATER_SECONDS = 1
"""Retry-After for too many simultaneous requests, whose duration is unknown."""
MENDING_SECONDS = 10
"""Retry-After of faults that an operator must fix."""
SHARE = 10
"""Factor from the limit of one address to the limit of all."""
MOST_ADDRESSES = 10_000
"""Largest number of counted addresses; beyond it, only the total limit holds."""
MOST_KNOWN = 1_000
"""Largest number of remembered addresses with a successful login."""
MOST_STREAMS = 16
MOST_STREAMS_OF_TOKEN = 4
Value = TypeVar("Value")


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


class LoginLimiter:
    """Counts failed logins of one worker. Used in the event loop only.

    An address with a successful login has only its own limit: other addresses cannot lock it out.

    Args:
        failures_per_minute: limit per address; it is also the largest burst.
        clock: seconds, monotonic.
    """

    def __init__(self, failures_per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._failures = failures_per_minute
        self._clock = clock
        self._all = self._bucket(SHARE)
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()

    def begin(self, address: str) -> None:
        """Count an attempt as failed before it is verified, so that simultaneous ones count, too.

        Raises:
            TooManyRequestsError: too many have failed.
        """
        client, now = network_of(address), self._clock()
        if wait := self._of(client).take(1, now=now):
            raise self._exceeded(wait, "from your address")
        if client not in self._known and (wait := self._all.take(1, now=now)):
            raise self._exceeded(wait, "from all addresses together")

    def forgive(self, address: str) -> None:
        """Undo the latest count: the attempt could not be verified."""
        client, now = network_of(address), self._clock()
        self._of(client).put(1, now=now)
        if client not in self._known:
            self._all.put(1, now=now)

    def succeed(self, address: str) -> None:
        """Undo the latest count: the attempt succeeded."""
        self.forgive(address)
        _remember(self._known, network_of(address), None, MOST_KNOWN)

    def _of(self, client: str) -> TokenBucket:
        bucket = self._buckets.get(client) or self._bucket(1)
        _remember(self._buckets, client, bucket, MOST_ADDRESSES)
        return bucket

    def _bucket(self, times: int) -> TokenBucket:
        most = self._failures * times
        return TokenBucket(rate=most / 60, burst=most, now=self._clock())

    def _exceeded(self, wait: float, where: str) -> TooManyRequestsError:
        metrics.REFUSED_REQUESTS.labels("failed_logins", ANONYMOUS).inc()
        seconds = max(1, math.ceil(wait))
        return TooManyRequestsError(
            f"too many logins {where} have failed.",
            field="token",
            hint=f"Try again in {seconds} {'second' if seconds == 1 else 'seconds'}.",
            retry_after_seconds=seconds,
        )


def _remember(known: "OrderedDict[str, Value]", client: str, value: Value, most: int) -> None:
    known[client] = value
    known.move_to_end(client)
    if len(known) > most:
        known.popitem(last=False)


class OpenStreams:
    """Counts the open streams of a worker; used in its event loop only.

    Args:
        most: largest number of streams at a time.
        most_of_token: the same of one token.
    """

    def __init__(self, most: int = MOST_STREAMS, most_of_token: int = MOST_STREAMS_OF_TOKEN) -> None:
        self._most = most
        self._most_of_token = most_of_token
        self._open: Counter[str] = Counter()

    def open(self, token: str) -> None:
        """Count a new stream.

        Raises:
            UnavailableError: there are too many, of this token or of all.
        """
        own, total = self._open[token], self._open.total()
        if own >= self._most_of_token or total >= self._most:
            raise UnavailableError(
                f"this worker has {total} open streams, {own} of them of the token {token!r}; it keeps at most"
                f" {self._most}, {self._most_of_token} of one token.",
                hint="Try again later, or ask for the log: GET /v1/admin/jobs/{job}/log.",
            )
        self._open[token] += 1

    def close(self, token: str) -> None:
        """Count the end of a stream."""
        self._open[token] -= 1
