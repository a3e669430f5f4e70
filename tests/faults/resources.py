"""Memory, open descriptors, threads and child processes of a service over time, and checks of their growth."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psutil

from tests.integration.processes import Service
from tests.soak.memory import Sample, growth, weigh

MOST_DESCRIPTORS: Final = 8
"""Descriptors that may be more at the end: pools of connections open some later than others."""
MOST_THREADS: Final = 4
"""Threads that may be more at the end, for the same reason."""
_REST_SECONDS: Final = 3.0
"""Longest time after the load in which a server closes connections that its clients have closed."""
_LOOK_SECONDS: Final = 0.1
_DECODER: Final = "lifelong_service.decoding.child"


@dataclass(frozen=True)
class Rest:
    """What one process holds while no client is connected.

    Attributes:
        descriptors: number of open file descriptors.
        threads: number of threads.
        children: number of child processes, direct and indirect, without the first decoder of each worker.
    """

    descriptors: int
    threads: int
    children: int


class Watch:
    """Weighs the parent and the workers of a service in a thread, until the end of the block.

    Args:
        service: a service whose workers run.
        interval: seconds between two samples.

    Attributes:
        memory: samples of each process; seconds count from the start of the block.
        ended: names of the processes that have ended meanwhile.
    """

    def __init__(self, service: Service, *, interval: float) -> None:
        workers = sorted(service.workers(), key=lambda one: one.pid)
        self._processes = {"parent": psutil.Process(service.process.pid)}
        self._processes |= {f"worker {number}": one for number, one in enumerate(workers, 1)}
        self._interval = interval
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.memory: dict[str, list[Sample]] = {name: [] for name in self._processes}
        self.ended: list[str] = []

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the block."""
        return time.monotonic() - self._began

    def rest(self) -> dict[str, Rest]:
        """What each process holds, at least, within some seconds; to be called while no client is connected."""
        least: dict[str, Rest] = {}
        until = time.monotonic() + _REST_SECONDS
        while time.monotonic() < until:
            for name, process in self._processes.items():
                with suppress(psutil.NoSuchProcess):
                    found = _held(process)
                    least[name] = _least(least.get(name, found), found)
            time.sleep(_LOOK_SECONDS)
        return least

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            for name, process in self._processes.items():
                sample = weigh([process], self.seconds)
                if sample is not None:
                    self.memory[name].append(sample)
                elif name not in self.ended:
                    self.ended.append(name)


def grown_memory(
    memory: Mapping[str, Sequence[Sample]], *, after: float, until: float, most: float
) -> list[str]:
    """Processes whose kept memory has grown.

    Args:
        memory: samples of each process.
        after: end of the warm-up in seconds.
        until: end of the samples in seconds.
        most: largest relative growth.
    """
    shares = {name: growth(samples, after=after, until=until) for name, samples in memory.items()}
    return [
        f"the memory of {name} has grown by {100 * share:.1f} %"
        for name, share in shares.items()
        if share > most
    ]


def grown_holdings(first: Mapping[str, Rest], last: Mapping[str, Rest]) -> list[str]:
    """Processes that hold more descriptors, threads or child processes than before.

    Args:
        first: at rest after the warm-up.
        last: at rest at the end.
    """
    found: list[str] = []
    for name in first.keys() & last.keys():
        before, now = first[name], last[name]
        for kind, most in (("descriptors", MOST_DESCRIPTORS), ("threads", MOST_THREADS), ("children", 0)):
            if getattr(now, kind) > getattr(before, kind) + most:
                found.append(
                    f"{name} holds {getattr(now, kind)} {kind} at rest, and held {getattr(before, kind)}"
                )
    return found


def ended_processes(names: Sequence[str]) -> list[str]:
    """Processes that have ended."""
    return [f"{name} has ended" for name in names]


def _held(process: psutil.Process) -> Rest:
    return Rest(process.num_fds(), process.num_threads(), _children(process))


def _children(process: psutil.Process) -> int:
    """Number of child processes; one decoder of each worker is left out, because it stays after its first image."""
    children = process.children(recursive=True)
    decoders = Counter(child.ppid() for child in children if _DECODER in child.cmdline())
    return len(children) - len(decoders)


def _least(one: Rest, other: Rest) -> Rest:
    return Rest(
        min(one.descriptors, other.descriptors),
        min(one.threads, other.threads),
        min(one.children, other.children),
    )
