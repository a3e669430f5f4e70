"""The micro-batcher: one thread takes what waits, works on it together and gives everybody their own answer."""

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
from lifelong_service import metrics
from lifelong_service.limits.service_rate import ServiceRate
from lifelong_service.limits.sharing import has_room

Job = TypeVar("Job")
Answer = TypeVar("Answer")
Process: TypeAlias = Callable[[Sequence[Job]], Sequence[Answer | Exception]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Waiting(Generic[Job, Answer]):
    job: Job
    samples: int
    owner: str
    future: "asyncio.Future[Answer]"
    loop: asyncio.AbstractEventLoop


class MicroBatcher(Generic[Job, Answer]):
    """A bounded queue before one worker thread. There is no artificial delay: a lone job is worked on at once.

    Overload is refused at the entrance: a job is turned away when those before it take longer than
    `maximum_wait_seconds`, by the measured rate. So every job in the queue is worth its work, and the queue needs no
    other order than that of arrival. Owners share the wait by `sharing.has_room`: a greedy one fills half of it.

    Args:
        process: what is done with a batch, in the thread; it gives one answer or exception per job, in order.
        capacity: jobs that may wait; one more is turned away.
        maximum_samples: a batch is closed before it would hold more samples than this; one large job is a batch.
        maximum_wait_seconds: expected time in the queue from which on jobs are turned away. A batch is closed before
            it would take a quarter of it.
        watch: told the length of the queue whenever it changes.
    """

    def __init__(
        self,
        process: Process[Job, Answer],
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
        self._waiting: deque[_Waiting[Job, Answer]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._began: float | None = None
        self._thread = threading.Thread(target=self._work, name="micro-batcher", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def close(self) -> None:
        """Take no more jobs, answer all that wait, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the thread works and takes jobs."""
        return self._thread.is_alive() and not self._closing

    @property
    def busy_seconds(self) -> float:
        """How long the thread has worked on the present batch; 0 between two batches."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    @property
    def queue_length(self) -> int:
        """Jobs that wait, without those being worked on."""
        return len(self._waiting)

    @property
    def expected_wait_seconds(self) -> float:
        """How long a job that is submitted now waits before it is worked on, by the measured rate."""
        rate = self._rate.seconds_per_sample
        present = max(0.0, self._working * rate - self.busy_seconds)
        return self._samples.total() * rate + present

    def check_room(self, owner: str) -> None:
        """Look whether a job of this owner would be taken now; any thread may ask.

        Raises:
            UnavailableError: too much waits already, or the worker stops.
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
        # The rate is a guess. Who has nothing in the queue is not refused for what others put there a moment ago.
        limit = self._maximum_wait if own else 2 * self._maximum_wait
        if not has_room(own=own, total=total, limit=limit):
            metrics.REFUSED_REQUESTS.labels("wait", owner).inc()
            raise UnavailableError(
                f"the requests that wait already take {total:.1f} s.",
                hint="Try again later, or add workers.",
                retry_after_seconds=max(1, math.ceil(total)),
            )

    async def submit(self, job: Job, *, samples: int = 1, owner: str = "") -> Answer:
        """Wait in the queue for the answer.

        Args:
            job: what is to be done.
            samples: as how many it counts.
            owner: whose job it is; owners share the queue.

        Raises:
            UnavailableError: as `check_room`.
            Exception: what `process` gave for this job.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        with self._changed:
            self.check_room(owner)
            self._waiting.append(_Waiting(job, samples, owner, future, loop))
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

    def _take(self) -> list[_Waiting[Job, Answer]]:
        """The next batch; empty only when the batcher is closing and everything is answered."""
        with self._changed:
            while True:
                batch = self._gather()
                if batch or self._closing:
                    return batch
                self._changed.wait()

    def _gather(self) -> list[_Waiting[Job, Answer]]:
        batch: list[_Waiting[Job, Answer]] = []
        samples, most = 0, self._largest_batch()
        while self._waiting:
            first = self._waiting[0]
            if batch and samples + first.samples > most:
                break
            self._waiting.popleft()
            self._samples[first.owner] -= first.samples
            if first.future.cancelled():  # the client has given up: do not work for nobody
                continue
            batch.append(first)
            samples += first.samples
        if batch:
            self._working = samples
            self._watch(len(self._waiting))
        return batch

    def _largest_batch(self) -> int:
        """Samples of a batch that takes at most a quarter of the wait: what arrives meanwhile waits for all of it."""
        rate = self._rate.seconds_per_sample
        if not rate or math.isinf(self._maximum_wait):
            return self._maximum_samples
        return min(self._maximum_samples, int(self._maximum_wait / 4 / rate))

    def _answers(self, batch: Sequence[_Waiting[Job, Answer]]) -> Sequence[Answer | Exception]:
        try:
            answers = self._process([waiting.job for waiting in batch])
        except Exception as error:  # noqa: BLE001 - the thread must outlive any fault; everybody in the batch hears of it
            return [error] * len(batch)
        if len(answers) != len(batch):
            return [RuntimeError(f"{len(answers)} answers for {len(batch)} jobs")] * len(batch)
        return answers


def _deliver(batch: Sequence[_Waiting[Job, Answer]], answers: Sequence[Answer | Exception]) -> None:
    """Hand over the answers, with one wake-up for each event loop (there is one, outside tests)."""
    loops = {waiting.loop for waiting in batch}
    for loop in loops:
        mine = [(w.future, answer) for w, answer in zip(batch, answers, strict=True) if w.loop is loop]
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:  # the loop is closed: its clients are gone
            logger.warning("dropped %d answers: the event loop is closed", len(mine))


def _settle(answers: "Sequence[tuple[asyncio.Future[Answer], Answer | Exception]]") -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
