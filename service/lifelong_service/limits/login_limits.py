"""Limits of failed logins to the console, per address and in total."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from lifelong_core.values.errors import TooManyRequestsError
from lifelong_service import metrics
from lifelong_service.http.client_addresses import network_of
from lifelong_service.limits.token_bucket import TokenBucket
from lifelong_service.prediction.requests import ANONYMOUS

Value = TypeVar("Value")

SHARE = 10
"""Factor from the limit of one address to the limit of all."""
MOST_ADDRESSES = 10_000
"""Largest number of counted addresses; beyond it, only the total limit holds."""
MOST_KNOWN = 1_000
"""Largest number of remembered addresses with a successful login."""


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
