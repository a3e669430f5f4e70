"""An attack and its goals: limits that must hold during the attack."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from tests import tools
from tests.attacks.target import Target


@dataclass(frozen=True)
class Scale:
    """Size of an attack.

    Attributes:
        seconds: duration of a stream of requests.
        clients: number of simultaneous clients.
    """

    seconds: float
    clients: int


FULL = Scale(seconds=60, clients=6)
QUICK = Scale(seconds=4, clients=4)


@dataclass
class Outcome:
    """Figures of one attack, and its missed goals."""

    figures: dict[str, float] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def expect(self, name: str, value: float, *, below: float) -> None:
        """Record a figure with its limit."""
        self.figures[name] = round(value, 4)
        if not value < below:
            self.missed.append(f"{name} is {value:.4g}, expected less than {below:g}")

    def expect_in_time(self, name: str, seconds: float, *, below: float) -> None:
        """Record a duration with its deadline, which holds on a machine without other work."""
        self.expect(name, seconds, below=below if tools.has_deadlines() else float("inf"))


@contextmanager
def flood(clients: int, seconds: float, send: Callable[[int, int], object]) -> Iterator[None]:
    """Threads send one request after the other for some seconds; the block ends with the last of them.

    Args:
        clients: number of threads.
        seconds: duration.
        send: sends a request, by the numbers of its client and of its turn.
    """
    end = time.monotonic() + seconds

    def run(client: int) -> None:
        for turn in itertools.count():
            if time.monotonic() >= end:
                return
            send(client, turn)

    threads = [threading.Thread(target=run, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


Attack: TypeAlias = Callable[[Target, Scale], Outcome]
