"""A rate limit that allows bursts."""


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
