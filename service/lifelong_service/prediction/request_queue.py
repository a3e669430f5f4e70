"""The waiting requests of a micro-batcher, those that need preparation and those that are ready; its measured rate."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass
from typing import Generic, TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")
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


@dataclass(slots=True, eq=False)
class Waiting(Generic[Request, Answer]):
    """A request and the future of its answer.

    Attributes:
        request: the request, prepared or not.
        samples: its weight in a batch; an estimate until it is prepared.
        owner: name of its caller.
        future: gets the answer; cancelled: the client has closed the connection.
        loop: event loop of the future.
        preparation_samples: its weight in preparation; 0: it needs none.
    """

    request: Request
    samples: int
    owner: str
    future: "asyncio.Future[Answer]"
    loop: asyncio.AbstractEventLoop
    preparation_samples: int = 0


class RequestQueue(Generic[Request, Answer]):
    """Requests become ready in order of arrival, or when they are prepared. Not thread-safe: its user holds a lock.

    Args:
        maximum_ahead: samples that are prepared before a batch takes them; it bounds their memory.
    """

    def __init__(self, *, maximum_ahead: int) -> None:
        self._maximum_ahead = maximum_ahead
        self._unprepared: deque[Waiting[Request, Answer]] = deque()
        self._ready: deque[Waiting[Request, Answer]] = deque()
        self._in_preparation = 0
        self._ahead = 0
        self._unprepared_samples = 0
        self._samples: Counter[str] = Counter()

    def __len__(self) -> int:
        """Number of requests, those in preparation included."""
        return len(self._ready) + len(self._unprepared) + self._in_preparation

    @property
    def total_samples(self) -> int:
        """Samples of all requests."""
        return self._samples.total()

    @property
    def unprepared_samples(self) -> int:
        """Samples in preparation of the requests that are not ready."""
        return self._unprepared_samples

    @property
    def has_unprepared(self) -> bool:
        """Whether a request waits for its preparation."""
        return bool(self._unprepared)

    def samples_of(self, owner: str) -> int:
        """Samples of the requests of one owner."""
        return self._samples[owner]

    def add(self, waiting: Waiting[Request, Answer]) -> None:
        """Add a new request."""
        self._samples[waiting.owner] += waiting.samples
        if waiting.preparation_samples:
            self._unprepared_samples += waiting.preparation_samples
            self._unprepared.append(waiting)
        else:
            self._ready.append(waiting)

    def discard(self, waiting: Waiting[Request, Answer]) -> None:
        """Remove a request that was given up, and so its memory; one that is prepared or processed now stays."""
        if waiting in self._ready:
            self._ready.remove(waiting)
            self._forget_ready(waiting)
        elif waiting in self._unprepared:
            self._unprepared.remove(waiting)
            self._forget_unprepared(waiting)

    def take_unprepared(self) -> Waiting[Request, Answer] | None:
        """Return the first request to prepare, for `add_prepared`; None: there is none, or enough are ready."""
        while self._unprepared and self._ahead < self._maximum_ahead:
            waiting = self._unprepared.popleft()
            if waiting.future.cancelled():
                self._forget_unprepared(waiting)
                continue
            self._in_preparation += 1
            self._ahead += waiting.preparation_samples
            return waiting
        return None

    def add_prepared(self, waiting: Waiting[Request, Answer], request: Request, samples: int) -> None:
        """Add a request of `take_unprepared` in its prepared form, which has so many samples."""
        self._in_preparation -= 1
        self._unprepared_samples -= waiting.preparation_samples
        self._ahead += samples - waiting.preparation_samples
        self._samples[waiting.owner] += samples - waiting.samples
        waiting.request, waiting.samples = request, samples
        self._ready.append(waiting)

    def take_batch(self, most: int) -> list[Waiting[Request, Answer]]:
        """Return the first ready requests without the cancelled ones.

        Args:
            most: largest number of samples, unless the first request alone has more.
        """
        batch: list[Waiting[Request, Answer]] = []
        samples = 0
        while self._ready:
            first = self._ready[0]
            if batch and samples + first.samples > most:
                break
            self._ready.popleft()
            self._forget_ready(first)
            if not first.future.cancelled():
                batch.append(first)
                samples += first.samples
        return batch

    def _forget_ready(self, waiting: Waiting[Request, Answer]) -> None:
        self._samples[waiting.owner] -= waiting.samples
        if waiting.preparation_samples:
            self._ahead -= waiting.samples

    def _forget_unprepared(self, waiting: Waiting[Request, Answer]) -> None:
        self._samples[waiting.owner] -= waiting.samples
        self._unprepared_samples -= waiting.preparation_samples
