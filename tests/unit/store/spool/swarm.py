"""Processes on one spool, forked from one that has used it already: writers, one of which is killed again and again,
and one that delivers. Each writes down what it knows; the tests compare.

    python swarm.py FOLDER WRITERS KILLS [without-lock]
"""

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from lifelong_core.store import LogEntry, Prediction, RequestKey, new_prediction_id
from lifelong_core.store.spool.locks import FileLock
from lifelong_core.store.spool.spool import Spool

LOGITS = np.zeros(3, np.float32)


def entry(writer: int, number: int) -> LogEntry:
    """The writer is the model, the number its head."""
    prediction = Prediction(new_prediction_id(), writer, "default", number, 0, LOGITS)
    return LogEntry((prediction,), RequestKey(writer, "default", str(number)) if number % 2 else None)


def write(spool: Spool, folder: Path, writer: int, stop: Path) -> None:
    """Append batches, and note the last number of each when it is safe."""
    notes = os.open(folder / f"{writer}.acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    number = 0
    while not stop.exists():
        batch = [entry(writer, number + i) for i in range(1 + number % 3)]
        if not all(spool.append(batch)):
            raise AssertionError("a new request was taken for one that waits")
        number += len(batch)
        os.write(notes, f"{number}\n".encode())


def deliver(spool: Spool, folder: Path, stop: Path) -> None:
    """Note what comes, until the writers have stopped and nothing is left."""
    notes = os.open(folder / "delivered", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(entries: Sequence[LogEntry]) -> None:
        rows = [f"{row.model_id} {row.head_version}\n" for one in entries for row in one.predictions]
        os.write(notes, "".join(rows).encode())

    while True:
        is_last = stop.exists()
        if spool.deliver(note, limit=random.randint(1, 50)) == 0 and is_last:
            return


def fork(work: Callable[[], None]) -> int:
    """The process id of a child that does the work."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def run(folder: Path, writers: int, kills: int) -> None:
    """Say how each process ended that was not killed."""
    spool = Spool(folder / "spool", maximum_bytes=100_000_000, segment_bytes=5_000)
    spool.append([entry(0, 0)])
    stop, no_more = folder / "stop", folder / "no-more"
    deliverer = fork(lambda: deliver(spool, folder, no_more))
    others = [fork(lambda writer=writer: write(spool, folder, writer, stop)) for writer in range(1, writers)]
    for attempt in range(kills):
        victim = fork(lambda attempt=attempt: write(spool, folder, writers + attempt, stop))
        time.sleep(random.uniform(0.005, 0.025))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
    stop.touch()
    statuses = [os.waitpid(other, 0)[1] for other in others]
    no_more.touch()
    statuses.append(os.waitpid(deliverer, 0)[1])
    sys.stdout.write(f"{statuses}\n")


@contextlib.contextmanager
def no_lock(lock: FileLock, *, until: float) -> Iterator[int]:
    """As if the lock were there."""
    descriptor = lock._open()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    random.seed(0)
    if sys.argv[4:]:
        FileLock.hold = no_lock
    run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
