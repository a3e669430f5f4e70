"""The micro-batcher: one thread takes what waits, works on it together and gives everybody their own answer."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from lifelong_core.errors import UnavailableError

Job = TypeVar("Job")
Answer = TypeVar("Answer")
Process: TypeAlias = Callable[[Sequence[Job]], Sequence[Answer | Exception]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Waiting(Generic[Job, Answer]):
    job: Job
    samples: int
    future: "asyncio.Future[Answer]"
    loop: asyncio.AbstractEventLoop


class MicroBatcher(Generic[Job, Answer]):
    """A bounded queue before one worker thread. There is no artificial delay: a lone job is worked on at once.

    Args:
        process: what is done with a batch, in the thread; it gives one answer or exception per job, in order.
        capacity: jobs that may wait; one more is turned away.
        maximum_samples: a batch is closed before it would hold more samples than this; one large job is a batch.
        watch: told the length of the queue whenever it changes.
    """

    def __init__(
        self,
        process: Process[Job, Answer],
        *,
        capacity: int,
        maximum_samples: int,
        watch: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._process = process
        self._capacity = capacity
        self._maximum_samples = maximum_samples
        self._watch = watch
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

    async def submit(self, job: Job, *, samples: int = 1) -> Answer:
        """Wait in the queue for the answer.

        Raises:
            UnavailableError: the queue is full or the worker stops.
            Exception: what `process` gave for this job.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        with self._changed:
            if self._closing:
                raise UnavailableError("this worker is stopping.", mend="Try again: another worker answers.")
            if len(self._waiting) >= self._capacity:
                raise UnavailableError(
                    f"{self._capacity} requests are waiting already.", mend="Try again later, or add workers."
                )
            self._waiting.append(_Waiting(job, samples, future, loop))
            self._watch(len(self._waiting))
            self._changed.notify()
        return await future

    def _work(self) -> None:
        while batch := self._take():
            self._began = time.monotonic()
            answers = self._answers(batch)
            self._began = None
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
        samples = 0
        while self._waiting:
            first = self._waiting[0]
            if batch and samples + first.samples > self._maximum_samples:
                break
            self._waiting.popleft()
            if first.future.cancelled():  # the client has given up: do not work for nobody
                continue
            batch.append(first)
            samples += first.samples
        if batch:
            self._watch(len(self._waiting))
        return batch

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
