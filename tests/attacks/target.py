"""A real service under attack: latency of normal clients, and memory of its processes."""

import http.client
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from tests.integration.installation import Installation, image, install
from tests.integration.processes import Connection, Service, running_service

MEGABYTE = 1e6
PROBE_SECONDS = 0.05
OPEN_FILES = 1024


@dataclass
class Witness:
    """Results of one kind of normal request during an attack.

    Attributes:
        seconds: times from sending to the last byte of the answer.
        failures: answers other than 200, and broken connections.
    """

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Percentile of the latency, in seconds."""
        return float(np.percentile(self.seconds, share)) if self.seconds else float("inf")


@dataclass
class Observation:
    """Latencies and memory during an attack."""

    predictions: Witness
    livez: Witness
    readyz: Witness
    console: Witness
    memory_before: dict[int, float]
    memory_peak: dict[int, float] = field(default_factory=dict[int, float])
    total_peak: float = 0.0

    @property
    def growth_megabytes(self) -> float:
        """Growth of the total proportional set size of all processes of the service."""
        return self.total_peak - sum(self.memory_before.values())

    @property
    def worker_growth_megabytes(self) -> float:
        """Largest growth of a worker with its decoding process."""
        return max(self.memory_peak[worker] - before for worker, before in self.memory_before.items())

    def weigh(self, memory: dict[int, float]) -> None:
        """Keep the highest values.

        Args:
            memory: result of `Target.memory`.
        """
        self.total_peak = max(self.total_peak, sum(memory.values()))
        for process, megabytes in memory.items():
            self.memory_peak[process] = max(self.memory_peak.get(process, 0.0), megabytes)


@dataclass(frozen=True)
class Target:
    """A service with two workers, and tokens.

    Attributes:
        memory_at_start: from which the growth counts; None: from the start of an attack.
    """

    service: Service
    installation: Installation
    memory_at_start: dict[int, float] | None = None

    def memory(self) -> dict[int, float]:
        """Megabytes of each worker with its children, and of their parent, by process id; shared pages count once."""
        workers = {worker.pid: [worker, *_children(worker)] for worker in self.service.workers()}
        inside = {process.pid for processes in workers.values() for process in processes}
        others = [process for process in self.service.processes() if process.pid not in inside]
        groups = workers | {self.service.process.pid: others}
        return {pid: sum(map(_megabytes, processes)) for pid, processes in groups.items()}

    @contextmanager
    def watched(self, cookie: str = "") -> Iterator[Observation]:
        """Send normal requests and measure the memory until the block ends.

        Args:
            cookie: of a session of the console, whose start page is then asked for, too.
        """
        observation = Observation(
            Witness(), Witness(), Witness(), Witness(), self.memory_at_start or self.memory()
        )
        stop = threading.Event()
        innocent = image("JPEG", 224)
        threads = [
            threading.Thread(target=self._witness, args=(stop, send, witness))
            for send, witness in (
                (
                    lambda c: c.send("POST", "/v1/predict", innocent, Content_Type="image/jpeg"),
                    observation.predictions,
                ),
                (lambda c: c.send("GET", "/livez"), observation.livez),
                (lambda c: c.send("GET", "/readyz"), observation.readyz),
                (lambda c: c.send("GET", "/console", Cookie=cookie), observation.console),
            )
            if cookie or witness is not observation.console
            for _ in range(2)  # so that both workers are asked
        ]
        threads.append(threading.Thread(target=self._weigh, args=(stop, observation)))
        for thread in threads:
            thread.start()
        try:
            yield observation
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _witness(self, stop: threading.Event, send: Callable[[Connection], object], witness: Witness) -> None:
        while not stop.is_set():
            began = time.monotonic()
            try:
                with self.service.connect() as connection:
                    reply = send(connection)
                if reply.status != 200:  # pyright: ignore[reportAttributeAccessIssue]
                    witness.failures.append(f"{reply.status} {reply.content[:200]!r}")  # pyright: ignore[reportAttributeAccessIssue]
            except (OSError, http.client.HTTPException) as error:
                witness.failures.append(repr(error))
            witness.seconds.append(time.monotonic() - began)
            stop.wait(PROBE_SECONDS)

    def _weigh(self, stop: threading.Event, observation: Observation) -> None:
        while not stop.is_set():
            observation.weigh(self.memory())
            stop.wait(0.1)


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:  # it has ended by now
        return []


def _megabytes(process: psutil.Process) -> float:
    try:
        return process.memory_full_info().pss / MEGABYTE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0.0


@contextmanager
def running_target(folder: Path, **settings: object) -> Iterator[Target]:
    """A new installation with a service on a free port, both workers warm.

    The service starts with the usual limit of open files of a process.
    """
    installation = install(folder)
    command = ("prlimit", f"--nofile={OPEN_FILES}:", sys.executable, "-m", "lifelong_service")
    usual: dict[str, object] = {"keep_alive_seconds": None}
    with running_service(folder, installation.token, command=command, **(usual | settings)) as service:
        service.wait_for_workers()
        for _ in range(20):
            service.send("POST", "/v1/predict", image("JPEG", 224), Content_Type="image/jpeg")
        yield Target(service, installation)
