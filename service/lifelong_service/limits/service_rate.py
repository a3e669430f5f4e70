"""The measured rate of the micro-batcher."""

from collections import deque

_BATCHES = 16


class ServiceRate:
    """Mean seconds per sample over the last batches of all models.

    The slowest of these batches is left out: it may have waited for the database, or be the first of its process.

    Examples:
        >>> rate = ServiceRate()
        >>> for seconds, samples in ((0.5, 1), (0.02, 2), (0.04, 4)):
        ...     rate.note(seconds, samples)
        >>> round(rate.seconds_per_sample, 3)
        0.01
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque(maxlen=_BATCHES)
        self.seconds_per_sample = 0.0
        """0 before there are two batches."""

    def note(self, seconds: float, samples: int) -> None:
        """Record the duration of a batch."""
        self._recent.append((seconds, samples))
        slowest = max(self._recent, key=lambda batch: batch[0] / batch[1])
        counted = sum(batch[1] for batch in self._recent) - slowest[1]
        if counted:
            self.seconds_per_sample = (sum(batch[0] for batch in self._recent) - slowest[0]) / counted
