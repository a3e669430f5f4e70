"""Fair shares of a bounded resource among an unknown number of users, as the bytes of bodies; rates with bursts."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from lifelong_core.values.errors import UnavailableError
from lifelong_service import metrics


def has_room(*, own: float, total: float, limit: float) -> bool:
    """Whether one of several users of a resource may take more of it.

    Each may hold as much as is free: a single user at most half of the limit, two users a third each, so that a new
    user always gets a share. These are the dynamic thresholds of Choudhury and Hahne (1998).

    Args:
        own: amount that this user holds.
        total: amount that all users hold together.
        limit: size of the resource.

    Examples:
        >>> has_room(own=49, total=49, limit=100), has_room(own=50, total=50, limit=100)
        (True, False)
        >>> has_room(own=0, total=50, limit=100)
        True
    """
    return own + total < limit


class FairSlots:
    """A number of slots that clients share by `has_room`. Used in the event loop only.

    Args:
        most: number of slots.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    def has_room(self, client: str) -> bool:
        """Whether this client may hold another slot."""
        return has_room(own=self._held[client], total=self._held.total(), limit=self._most)

    @contextmanager
    def hold(self, client: str) -> Iterator[None]:
        """Hold a slot until the block ends."""
        self._held[client] += 1
        try:
            yield
        finally:
            self._held[client] -= 1
            if not self._held[client]:
                del self._held[client]


class TokenBucket:
    """Holds up to `burst` units and gains `rate` units per second.

    Args:
        rate: units per second.
        burst: largest number of units that the bucket holds.
        now: seconds of a monotonic clock; the bucket is full then.

    Examples:
        >>> bucket = TokenBucket(rate=2, burst=3, now=0)
        >>> bucket.take(3, now=0), bucket.take(1, now=0), bucket.take(1, now=0.5)
        (0.0, 0.5, 0.0)
    """

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._filled_at = now

    def take(self, units: float, *, now: float) -> float:
        """Take the units if they are available.

        Returns:
            0: they are taken. Otherwise nothing is taken, and the value is the seconds until they are available;
            infinite if they exceed the burst.
        """
        self._fill(now)
        if units <= self._level:
            self._level -= units
            return 0.0
        return (units - self._level) / self._rate if units <= self._burst else float("inf")

    def put(self, units: float, *, now: float) -> None:
        """Return units to the bucket."""
        self._fill(now)
        self._level = min(self._burst, self._level + units)

    def _fill(self, now: float) -> None:
        self._level = min(self._burst, self._level + self._rate * max(0.0, now - self._filled_at))
        self._filled_at = max(now, self._filled_at)


class BodyBudget:
    """Counts received bytes, not declared ones. Used in the event loop only.

    Args:
        maximum_bytes: limit of all bodies together; a single body may be larger.
    """

    def __init__(self, *, maximum_bytes: int) -> None:
        self._maximum = maximum_bytes
        self._held: Counter[str] = Counter()
        self._total = 0

    def body(self, token: str, declared: int) -> "BodyShare":
        """Count the body of one request until the block of the result ends.

        Args:
            token: name of the token that sends it.
            declared: its Content-Length; 0 where there is none.

        Raises:
            UnavailableError: there is no room for it now.
        """
        if self._total and self._total + self._held[token] + declared > self._maximum:
            raise self._full(token)
        return BodyShare(self, token)

    def take(self, token: str, count: int) -> None:
        """Count more received bytes of a body.

        Raises:
            UnavailableError: there is no room for them.
        """
        is_alone = self._held[token] == self._total == 0
        if not is_alone and not has_room(own=self._held[token], total=self._total, limit=self._maximum):
            raise self._full(token)
        self._held[token] += count
        self._total += count

    def give_back(self, token: str, count: int) -> None:
        """Count the bytes of a body no longer."""
        self._held[token] -= count
        self._total -= count

    @property
    def held_bytes(self) -> int:
        """Received bytes of all bodies."""
        return self._total

    def _full(self, token: str) -> UnavailableError:
        metrics.REFUSED_REQUESTS.labels("body_bytes", token).inc()
        return UnavailableError(
            f"the bodies of other requests hold {self._total} bytes already.",
            field="body",
            hint="Try again later, or raise LIFELONG_MAXIMUM_HELD_BODY_BYTES.",
        )


class BodyShare:
    """The share of one body in the budget, until its block ends."""

    def __init__(self, budget: BodyBudget, token: str) -> None:
        self._budget = budget
        self._token = token
        self.bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.give_back(self._token, self.bytes)

    def add(self, count: int) -> None:
        """Count more received bytes.

        Raises:
            UnavailableError: there is no room for them.
        """
        if count:
            self._budget.take(self._token, count)
            self.bytes += count
