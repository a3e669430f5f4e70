"""Fair shares of a bounded resource among an unknown number of users; rates with bursts."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


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
