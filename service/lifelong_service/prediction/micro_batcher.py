"""The micro-batcher: one thread processes waiting requests together and returns each answer to its caller.

Other threads prepare requests as they arrive, so that the preparation of later ones overlaps with a batch.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias

from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.values.errors import UnavailableError
from lifelong_service import metrics
from lifelong_service.clients.sharing import has_room
from lifelong_service.prediction.request_queue import Answer, Request, RequestQueue, ServiceRate, Waiting

Process: TypeAlias = Callable[[Sequence[Request]], Sequence[Answer | Exception]]
Prepare: TypeAlias = Callable[[Request], tuple[Request, int]]

BATCHES_AHEAD = 2
"""Batches whose requests are prepared before they begin."""

logger = logging.getLogger(__name__)


class MicroBatcher(Generic[Request, Answer]):
    """A bounded queue before one thread. There is no artificial delay: a lone request is processed at once.

    A request is rejected on arrival if the requests before it take longer than `maximum_wait_seconds` at the measured
    rate. So requests in the queue are answered in time, in the order in which they are ready. Owners
    share the wait by `sharing.has_room`: one owner alone fills half of it.

    Args:
        process: processes a batch, in the thread; returns one answer or exception per request, in order.
        capacity: largest number of waiting requests; one more is rejected.
        maximum_samples: largest number of samples in a batch, except for a single larger request.
        maximum_wait_seconds: expected time in the queue above which requests are rejected.
        maximum_batch_seconds: longest expected duration of a batch, because later requests wait for its end.
        prepare: prepares a request that was submitted for it, in another thread, and returns it with its weight in a
            batch; its errors are logged, and the request is processed as it was.
        preparing_threads: number of these threads.
        watch: called with the length of the queue after each change.
    """

    def __init__(
        self,
        process: Process[Request, Answer],
        *,
        capacity: int,
        maximum_samples: int,
        maximum_wait_seconds: float = math.inf,
        maximum_batch_seconds: float = math.inf,
        prepare: Prepare[Request] = lambda request: (request, 1),
        preparing_threads: int = 1,
        watch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._process = process
        self._capacity = capacity
        self._maximum_samples = maximum_samples
        self._maximum_wait = maximum_wait_seconds
        self._watch = watch
        self._maximum_batch_seconds = maximum_batch_seconds
        self._prepare = prepare
        self._rate = ServiceRate()
        self._preparation_rate = ServiceRate()
        self._queue: RequestQueue[Request, Answer] = RequestQueue(
            maximum_ahead=BATCHES_AHEAD * maximum_samples
        )
        self._working = 0
        """Samples of the present batch."""
        lock = threading.RLock()
        self._ready = threading.Condition(lock)
        self._preparable = threading.Condition(lock)
        self._closing = False
        self._began: float | None = None
        self._thread = BackgroundThread("micro-batcher", self._work)
        self._preparers = [
            BackgroundThread(f"preparation-{number}", self._prepare_all)
            for number in range(preparing_threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()
        for thread in self._preparers:
            thread.start()

    def close(self) -> None:
        """Reject new requests, answer all waiting ones, and end the threads."""
        with self._ready:
            self._closing = True
            self._ready.notify()
            self._preparable.notify_all()
        for thread in (*self._preparers, self._thread):
            thread.join()

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
        return len(self._queue)

    @property
    def expected_wait_seconds(self) -> float:
        """Expected wait of a new request, at the measured rate."""
        rate = self._rate.seconds_per_sample
        present = max(0.0, self._working * rate - self.busy_seconds)
        return max(self._queue.total_samples * rate + present, self._preparation_seconds)

    @property
    def _preparation_seconds(self) -> float:
        each = self._preparation_rate.seconds_per_sample / len(self._preparers)
        return self._queue.unprepared_samples * each

    def check_room(self, owner: str) -> None:
        """Check that a request of this owner would be accepted now. Any thread may call this.

        Raises:
            UnavailableError: the queue is full or its wait too long, or the worker stops.
        """
        if self._closing:
            raise UnavailableError("this worker is stopping.", hint="Try again: another worker answers.")
        if len(self._queue) >= self._capacity:
            metrics.REFUSED_REQUESTS.labels("queue", owner).inc()
            raise UnavailableError(
                f"{self._capacity} requests are waiting already.", hint="Try again later, or add workers."
            )
        if not self._queue:
            return
        total = self.expected_wait_seconds
        samples = self._queue.total_samples
        share = self._queue.samples_of(owner) / max(1, samples)
        own = share * max(samples * self._rate.seconds_per_sample, self._preparation_seconds)
        # The rate is an estimate: an owner without waiting requests is not rejected for a burst of the others.
        limit = self._maximum_wait if own else 2 * self._maximum_wait
        if not has_room(own=own, total=total, limit=limit):
            metrics.REFUSED_REQUESTS.labels("wait", owner).inc()
            raise UnavailableError(
                f"the requests that wait already take {total:.1f} s.",
                hint="Try again later, or add workers.",
                retry_after_seconds=max(1, math.ceil(total)),
            )

    async def submit(
        self, request: Request, *, samples: int = 1, owner: str = "", preparation_samples: int = 0
    ) -> Answer:
        """Return the answer, after the wait in the queue.

        Args:
            request: passed to `process`.
            samples: its weight in a batch: the expected time of its processing. 0: next to none.
            owner: name of the caller; owners share the queue.
            preparation_samples: its weight in preparation; 0: it is not passed to `prepare`.

        Raises:
            UnavailableError: as `check_room`.
            Exception: as `process` returned for this request.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        waiting = Waiting(request, samples, owner, future, loop, preparation_samples)
        with self._ready:
            self.check_room(owner)
            self._queue.add(waiting)
            self._watch(len(self._queue))
            (self._preparable if preparation_samples else self._ready).notify()
        try:
            return await future
        except asyncio.CancelledError:
            self._give_up(waiting)
            raise

    def _give_up(self, waiting: Waiting[Request, Answer]) -> None:
        """Make room for other requests."""
        with self._ready:
            self._queue.discard(waiting)
            self._watch(len(self._queue))
            self._preparable.notify_all()
            self._ready.notify()

    def _prepare_all(self) -> None:
        while (waiting := self._take_unprepared()) is not None:
            request, samples, began = waiting.request, waiting.samples, time.monotonic()
            try:
                request, samples = self._prepare(request)
            except Exception:  # the thread must outlive any fault
                logger.exception("a request could not be prepared")
            with self._ready:
                self._preparation_rate.note(time.monotonic() - began, waiting.preparation_samples)
                self._queue.add_prepared(waiting, request, samples)
                self._ready.notify()

    def _take_unprepared(self) -> Waiting[Request, Answer] | None:
        """Return the next request to prepare; None only when the batcher closes and all are prepared."""
        with self._preparable:
            while (waiting := self._queue.take_unprepared()) is None:
                if self._closing and not self._queue.has_unprepared:
                    self._ready.notify()  # the last one may have been cancelled
                    return None
                self._preparable.wait()
            return waiting

    def _work(self) -> None:
        while batch := self._take():
            began = self._began = time.monotonic()
            answers = self._answers(batch)
            if self._working:
                self._rate.note(time.monotonic() - began, self._working)
            self._working, self._began = 0, None
            _deliver(batch, answers)

    def _take(self) -> list[Waiting[Request, Answer]]:
        """Return the next batch; empty only when the batcher closes and nothing waits."""
        with self._ready:
            while True:
                before = len(self._queue)
                batch = self._queue.take_batch(self._largest_batch())
                self._working = sum(waiting.samples for waiting in batch)
                if len(self._queue) < before:  # also where all of them were cancelled
                    self._watch(len(self._queue))
                    self._preparable.notify_all()
                if batch or (self._closing and not self._queue):
                    return batch
                self._ready.wait()

    def _largest_batch(self) -> int:
        rate = self._rate.seconds_per_sample
        if not rate or math.isinf(self._maximum_batch_seconds):
            return self._maximum_samples
        return min(self._maximum_samples, int(self._maximum_batch_seconds / rate))

    def _answers(self, batch: Sequence[Waiting[Request, Answer]]) -> Sequence[Answer | Exception]:
        try:
            answers = self._process([waiting.request for waiting in batch])
        except Exception as error:  # noqa: BLE001 - the thread must outlive any fault; each request of the batch gets the error
            return [error] * len(batch)
        if len(answers) != len(batch):
            return [RuntimeError(f"{len(answers)} answers for {len(batch)} requests")] * len(batch)
        return answers


def _deliver(batch: Sequence[Waiting[Request, Answer]], answers: Sequence[Answer | Exception]) -> None:
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
