"""Ours and the peers as processes of their own, with the same model; the check that they answer alike."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.classification import environment_of
from benchmarks.serving.rounds import Figures
from benchmarks.serving.workloads import Workload, install
from benchmarks.serving.wrk import Load, Requests, prepared
from lifelong_core.values.errors import LifelongError
from tests.integration.processes import Service, running_service
from tests.ports import free_port

OURS, TYPED, PLAIN = "ours", "typed", "plain"
MEANINGS = {
    OURS: "this product: token, guards, SQLite log, metrics",
    TYPED: "typed BentoML image API: an image as a part of a form; no token, no log",
    PLAIN: "uvicorn, Starlette, the same micro-batcher; no token, no log, no metrics",
}
REPOSITORY = Path(__file__).resolve().parents[2]
COMPARED_IMAGES = 16
TOLERANCE = 1e-5
"""Largest difference of a probability between two servers."""
_JPEG = "image/jpeg"
_BOUNDARY = "benchmark-part"
_PATIENCE = {"LIFELONG_MAXIMUM_WAIT_SECONDS": "10"}
"""The peers refuse nothing; by default ours refuses requests of one token that would wait for more than 0.5 s."""


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        name: of the server.
        service: its processes.
        path: of the requests.
        headers: of the requests.
        bodies: of the requests, one for each image.
        requests: what wrk sends.
    """

    name: str
    service: Service
    path: str
    headers: Mapping[str, str]
    bodies: Sequence[bytes]
    requests: Requests

    def load(self, connections: int, seconds: float, *, is_slow: bool = False) -> Figures:
        """Figures of a time of load: rates, latencies in milliseconds, processor time of all its processes.

        Args:
            connections: number of connections.
            seconds: duration.
            is_slow: whether an answer takes so long that the rate is taken from the mean latency.
        """
        before = processor_seconds(self.service)
        load = self.requests.send(connections, seconds)
        processor = processor_seconds(self.service) - before
        rate = load.closed_loop_per_second(connections) if is_slow else load.per_second
        return figures_of(load, processor, rate)

    def decisions(self, count: int) -> list[tuple[int, list[float]]]:
        """Decision and probabilities of each of the first images, sent alone."""
        return [self._decision(body) for body in self.bodies[:count]]

    def _decision(self, body: bytes) -> tuple[int, list[float]]:
        headers = {name.replace("-", "_"): value for name, value in self.headers.items()}
        reply = self.service.send("POST", self.path, body, **headers)
        if reply.status != 200:
            raise LifelongError(f"{self.name} answered {reply.status}: {reply.content[:300]!r}")
        found: Any = reply.body["probabilities"]
        return reply.body["decision"], list(found.values()) if isinstance(found, dict) else found


def figures_of(load: Load, processor: float, rate: float) -> Figures:
    """A load as figures.

    Args:
        load: as measured.
        processor: processor time in seconds; it becomes microseconds per answered request.
        rate: answered requests per second.
    """
    return {
        "per_second": rate,
        "p50_ms": load.p50_ms,
        "p99_ms": load.p99_ms,
        "maximum_ms": load.maximum_ms,
        "refused": float(load.refused),
        "faults": float(load.faults),
        "processor_microseconds": processor / load.seconds / rate * 1e6,
    }


def processor_seconds(service: Service) -> float:
    """Processor time of all processes of a server."""
    times = [process.cpu_times() for process in service.processes()]
    return sum(one.user + one.system for one in times)


@contextmanager
def ours(
    workload: Workload, graph: Path, *, workers: int = 1, threads: int = 1
) -> Iterator[tuple[Service, Server]]:
    """The product, everything on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        token = install(folder, workload, graph)
        with running_ours(folder, token, workers=workers, threads=threads) as service:
            service.wait_for_workers(workers)
            headers = {"Authorization": f"Bearer {token}", "Content-Type": _JPEG}
            with _server(OURS, service, "/v1/predict", headers, workload.jpegs()) as server:
                yield service, server


@contextmanager
def running_ours(folder: Path, token: str, *, workers: int, threads: int) -> Iterator[Service]:
    """The product with the installation of a folder; it may not be ready yet."""
    with running_service(
        folder,
        token,
        environment={**_python_path(), **_PATIENCE},
        workers=workers,
        intra_op_threads=threads,
    ) as service:
        try:
            yield service
        finally:
            service.kill()


@contextmanager
def peer(name: str, workload: Workload, graph: Path, *, threads: int = 1) -> Iterator[Server]:
    """A peer with one worker."""
    port = free_port()
    if name == TYPED:
        options = ["--host", "127.0.0.1", "--port", str(port)]
        command = (
            sys.executable,
            "-m",
            "bentoml",
            "serve",
            "benchmarks.serving.typed_peer:TypedPeer",
            *options,
        )
        path, headers = "/classify", {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
        bodies = [_form(image) for image in workload.jpegs()]
    else:
        command = (sys.executable, "-m", "benchmarks.serving.plain_peer", str(port))
        path, headers, bodies = "/classify", {"Content-Type": _JPEG}, workload.jpegs()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **environment_of(graph, workload.preprocessing, threads),
            **_python_path(),
            "BENTOML_HOME": f"{folder}/bentoml",
            "BENTOML_DO_NOT_TRACK": "True",
        }
        with running_service(Path(folder), command=command, environment=environment, port=port) as service:
            try:
                service.wait_until_ready()
                with _server(name, service, path, headers, bodies) as server:
                    yield server
            finally:
                service.kill()  # BentoML's workers are in sessions of their own and outlive their parent


@contextmanager
def all_servers(workload: Workload, graph: Path) -> Iterator[dict[str, Server]]:
    """Ours and the peers, with one worker and one thread each, after the check that they answer alike.

    Raises:
        LifelongError: they do not.
    """
    with ExitStack() as stack:
        _, own = stack.enter_context(ours(workload, graph))
        peers = [stack.enter_context(peer(name, workload, graph)) for name in (TYPED, PLAIN)]
        answers = {server.name: server.decisions(COMPARED_IMAGES) for server in (own, *peers)}
        print(f"largest difference of a probability: {check_equal(answers):.1e}", flush=True)
        yield {server.name: server for server in (own, *peers)}


def check_equal(answers: Mapping[str, Sequence[tuple[int, list[float]]]]) -> float:
    """Return the largest difference of a probability between two servers.

    Args:
        answers: of each server, decision and probabilities of the same images in the same order.

    Raises:
        LifelongError: a decision differs, a probability differs by more than `TOLERANCE`, or all images have the same
            decision, so that servers that confuse images would agree.
    """
    decisions = {name: [decision for decision, _ in some] for name, some in answers.items()}
    first = next(iter(decisions.values()))
    if any(some != first for some in decisions.values()):
        raise LifelongError(f"the servers decide differently about the same images: {decisions}")
    if len(set(first)) == 1:
        raise LifelongError("all images have the same decision, so the answers cannot be compared.")
    probabilities = np.array([[row for _, row in some] for some in answers.values()])
    difference = float(np.ptp(probabilities, axis=0).max())
    if not difference <= TOLERANCE:
        raise LifelongError(f"the servers differ by {difference:.1e} in a probability, at most {TOLERANCE}.")
    return difference


@contextmanager
def _server(
    name: str, service: Service, path: str, headers: Mapping[str, str], bodies: Sequence[bytes]
) -> Iterator[Server]:
    with prepared(service.port, path, headers, bodies) as requests:
        yield Server(name, service, path, headers, bodies, requests)


def _form(image: bytes) -> bytes:
    disposition = 'Content-Disposition: form-data; name="image"; filename="image.jpg"'
    head = f"--{_BOUNDARY}\r\n{disposition}\r\nContent-Type: {_JPEG}\r\n\r\n"
    return head.encode() + image + f"\r\n--{_BOUNDARY}--\r\n".encode()


def _python_path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
