"""The micro-batcher: one thread processes waiting requests together and returns each answer to its caller."""

import asyncio
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from lifelong_core.errors import UnavailableError
from lifelong_core.runtime.background import BackgroundThread
from lifelong_service import metrics
from lifelong_service.limits.service_rate import ServiceRate
from lifelong_service.limits.sharing import has_room

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Process: TypeAlias = Callable[[Sequence[Request]], Sequence[Answer | Exception]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Waiting(Generic[Request, Answer]):
    request: Request
    samples: int
    owner: str
    future: "asyncio.Future[Answer]"
    loop: asyncio.AbstractEventLoop


class MicroBatcher(Generic[Request, Answer]):
    """A bounded queue before one thread. There is no artificial delay: a lone request is processed at once.

    A request is rejected on arrival if the requests before it take longer than `maximum_wait_seconds` at the measured
    rate. So requests in the queue are answered in time, in order of arrival. Owners share the wait by
    `sharing.has_room`: one owner alone fills half of it.

    Args:
        process: processes a batch, in the thread; returns one answer or exception per request, in order.
        capacity: largest number of waiting requests; one more is rejected.
        maximum_samples: largest number of samples in a batch, except for a single larger request.
        maximum_wait_seconds: expected time in the queue above which requests are rejected. A batch takes at most a
            quarter of it.
        watch: called with the length of the queue after each change.
    """

    def __init__(
        self,
        process: Process[Request, Answer],
        *,
        capacity: int,
        maximum_samples: int,
        maximum_wait_seconds: float = math.inf,
        watch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._process = process
        self._capacity = capacity
        self._maximum_samples = maximum_samples
        self._maximum_wait = maximum_wait_seconds
        self._watch = watch
        self._rate = ServiceRate()
        self._samples: Counter[str] = Counter()
        """Samples that wait, by owner."""
        self._working = 0
        """Samples of the present batch."""
        self._waiting: deque[_Waiting[Request, Answer]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._began: float | None = None
        self._thread = BackgroundThread("micro-batcher", self._work)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Reject new requests, answer all waiting ones, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the thread runs and accepts requests."""
        return self._thread.is_alive and not self._closing

    @property
    def busy_seconds(self) -> float:
        """Seconds since the present batch began; 0 between two batches."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    @property
    def queue_length(self) -> int:
        """Number of waiting requests, without those of the present batch."""
        return len(self._waiting)

    @property
    def expected_wait_seconds(self) -> float:
        """Expected wait of a new request, at the measured rate."""
        rate = self._rate.seconds_per_sample
        present = max(0.0, self._working * rate - self.busy_seconds)
        return self._samples.total() * rate + present

    def check_room(self, owner: str) -> None:
        """Check that a request of this owner would be accepted now. Any thread may call this.

        Raises:
            UnavailableError: the queue is full or its wait too long, or the worker stops.
        """
        if self._closing:
            raise UnavailableError("this worker is stopping.", hint="Try again: another worker answers.")
        if len(self._waiting) >= self._capacity:
            metrics.REFUSED_REQUESTS.labels("queue", owner).inc()
            raise UnavailableError(
                f"{self._capacity} requests are waiting already.", hint="Try again later, or add workers."
            )
        if not self._waiting:
            return
        total = self.expected_wait_seconds
        own = self._samples[owner] * self._rate.seconds_per_sample
        # The rate is an estimate: an owner without waiting requests is not rejected for a burst of the others.
        limit = self._maximum_wait if own else 2 * self._maximum_wait
        if not has_room(own=own, total=total, limit=limit):
            metrics.REFUSED_REQUESTS.labels("wait", owner).inc()
            raise UnavailableError(
                f"the requests that wait already take {total:.1f} s.",
                hint="Try again later, or add workers.",
                retry_after_seconds=max(1, math.ceil(total)),
            )

    async def submit(self, request: Request, *, samples: int = 1, owner: str = "") -> Answer:
        """Return the answer, after the wait in the queue.

        Args:
            request: passed to `process`.
            samples: its weight in a batch.
            owner: name of the caller; owners share the queue.

        Raises:
            UnavailableError: as `check_room`.
            Exception: as `process` returned for this request.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        with self._changed:
            self.check_room(owner)
            self._waiting.append(_Waiting(request, samples, owner, future, loop))
            self._samples[owner] += samples
            self._watch(len(self._waiting))
            self._changed.notify()
        return await future

    def _work(self) -> None:
        while batch := self._take():
            began = self._began = time.monotonic()
            answers = self._answers(batch)
            self._rate.note(time.monotonic() - began, self._working)
            self._working, self._began = 0, None
            _deliver(batch, answers)

    def _take(self) -> list[_Waiting[Request, Answer]]:
        """Return the next batch; empty only when the batcher closes and nothing waits."""
        with self._changed:
            while True:
                batch = self._gather()
                if batch or self._closing:
                    return batch
                self._changed.wait()

    def _gather(self) -> list[_Waiting[Request, Answer]]:
        batch: list[_Waiting[Request, Answer]] = []
        samples, most = 0, self._largest_batch()
        while self._waiting:
            first = self._waiting[0]
            if batch and samples + first.samples > most:
                break
            self._waiting.popleft()
            self._samples[first.owner] -= first.samples
            if first.future.cancelled():  # its client has closed the connection
                continue
            batch.append(first)
            samples += first.samples
        if batch:
            self._working = samples
            self._watch(len(self._waiting))
        return batch

    def _largest_batch(self) -> int:
        """Return the samples of a batch that takes at most a quarter of the wait: later requests wait for its end."""
        rate = self._rate.seconds_per_sample
        if not rate or math.isinf(self._maximum_wait):
            return self._maximum_samples
        return min(self._maximum_samples, int(self._maximum_wait / 4 / rate))

    def _answers(self, batch: Sequence[_Waiting[Request, Answer]]) -> Sequence[Answer | Exception]:
        try:
            answers = self._process([waiting.request for waiting in batch])
        except Exception as error:  # noqa: BLE001 - the thread must outlive any fault; each request of the batch gets the error
            return [error] * len(batch)
        if len(answers) != len(batch):
            return [RuntimeError(f"{len(answers)} answers for {len(batch)} requests")] * len(batch)
        return answers


def _deliver(batch: Sequence[_Waiting[Request, Answer]], answers: Sequence[Answer | Exception]) -> None:
    """Set the results of the futures, with one wake-up per event loop (there is one, outside tests)."""
    loops = {waiting.loop for waiting in batch}
    for loop in loops:
        mine = [(w.future, answer) for w, answer in zip(batch, answers, strict=True) if w.loop is loop]
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:  # the loop is closed, and its connections, too
            logger.warning("dropped %d answers: the event loop is closed", len(mine))


def _settle(answers: "Sequence[tuple[asyncio.Future[Answer], Answer | Exception]]") -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
