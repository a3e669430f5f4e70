"""Load of /v1/logits at a fixed rate, from a client that retries failures with the same request id.

The checks compare the log with its answers.
"""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.arrays import Floats, Logits

RATE = 200.0
"""Requests per second of the product's guarantees."""
ROWS = 2
CLASSES = 3
GROUPS = 50
_TIMEOUT_SECONDS = 15.0
_GIVE_UP_SECONDS = 60.0
_RETRY_SECONDS = 0.1
_PER_CONNECTION = 20
"""Requests per connection: a new connection may reach the other worker."""


@dataclass(frozen=True, eq=False)
class Request:
    """A request as it is sent, and what the log will hold of it."""

    id: str
    path: str
    content_type: str
    body: bytes
    logits: Logits
    """shape (N, CLASSES); of an image those of its graph, up to the rounding of its preprocessing"""
    group: str | None
    is_image: bool = False


@dataclass(frozen=True, eq=False)
class Answer:
    """Final answer of one request, its times and retries; times are seconds of the monotonic clock."""

    request_id: str
    environment: str
    group: str | None
    logits: Logits
    """shape (N, CLASSES), as in the request"""
    prediction_ids: tuple[UUID, ...]
    decisions: tuple[int, ...]
    probabilities: Floats
    head_version: int
    worker: str
    due_at: float
    """scheduled time of the request: waiting of the client counts"""
    sent_at: float
    """start of the answered try"""
    received_at: float
    resets: int
    """number of tries without an answer"""
    refusals: int
    """number of tries with the answer 503"""
    is_image: bool = False
    """whether an image was sent, so that `logits` are rounded"""

    @property
    def seconds(self) -> float:
        return self.received_at - self.due_at


@dataclass(frozen=True)
class Failure:
    """A request without a decision."""

    request_id: str
    due_at: float
    reason: str


class Load:
    """Threads that send requests until the end of the block, each with a unique request id.

    Args:
        port: port of the service on this machine, which may restart during the load.
        token: bearer token.
        environment: environment of the requests.
        rate: requests per second; None: each thread sends its next request after the answer.
        threads: largest number of simultaneous requests.
        seed: seed of the logits; ids and logits are functions of environment, seed and index.
    """

    def __init__(
        self,
        port: int,
        token: str,
        environment: str,
        *,
        rate: float | None = RATE,
        threads: int = 40,
        seed: int = 0,
    ) -> None:
        self._port = port
        self._token = token
        self._environment = environment
        self._interval = None if rate is None else 1 / rate
        self._seed = seed
        self._numbers = itertools.count()
        self._turn = threading.Lock()
        self._under_way = 0
        self._idle = threading.Condition()
        self._hopeless = threading.Event()
        self._may_send = threading.Event()
        self._may_send.set()
        self._next_at = 0.0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        self.prevalence: Sequence[float] = (1 / 3, 1 / 3, 1 / 3)
        """class prevalences of later requests"""
        self.answers: list[Answer] = []
        self.failures: list[Failure] = []
        self.refusals_without_retry_after = 0

    def __enter__(self) -> "Load":
        self._next_at = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._hopeless.set()
        self.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wait for all answers, and send no requests during the block."""
        self._may_send.clear()
        with self._idle:
            self._idle.wait_for(lambda: self._under_way == 0)
        try:
            yield
        finally:
            self._may_send.set()

    def stop(self) -> None:
        """Send no more requests, and wait for the answers to the sent ones."""
        self._stop.set()
        self._may_send.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        connection = None
        sent = 0
        while not self._stop.is_set():
            due_at = self._wait_for_turn()
            with self._counted() as may_send:
                if may_send:
                    if connection is None or sent % _PER_CONNECTION == 0:
                        connection = self._renewed(connection)
                    sent += 1
                    connection = self._send(connection, next(self._numbers), due_at)
        if connection is not None:
            connection.close()

    def _wait_for_turn(self) -> float:
        """Wait until the next request of this thread is due; return its scheduled time."""
        self._may_send.wait()
        if self._interval is None:
            return time.monotonic()
        with self._turn:
            # Missed requests are not sent later, so the rate never exceeds `rate`.
            due_at = max(self._next_at, time.monotonic() - self._interval)
            self._next_at = due_at + self._interval
        self._stop.wait(max(0.0, due_at - time.monotonic()))
        return due_at

    @contextmanager
    def _counted(self) -> Iterator[bool]:
        """Yield whether a request may be sent; it counts as active during the block."""
        with self._idle:
            self._under_way += 1
        try:
            yield self._may_send.is_set() and not self._stop.is_set()
        finally:
            with self._idle:
                self._under_way -= 1
                self._idle.notify_all()

    def _renewed(self, old: http.client.HTTPConnection | None) -> http.client.HTTPConnection:
        if old is not None:
            old.close()
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_SECONDS)

    def _send(
        self, connection: http.client.HTTPConnection, number: int, due_at: float
    ) -> http.client.HTTPConnection:
        """Send one request until it is answered; return the connection that is still usable."""
        request = self._request(number)
        resets = refusals = 0
        while time.monotonic() - due_at < _GIVE_UP_SECONDS and not self._hopeless.is_set():
            sent_at = time.monotonic()
            try:
                connection.request("POST", request.path, request.body, self._headers(request))
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException):
                resets += 1
                connection = self._renewed(connection)
                time.sleep(_RETRY_SECONDS)
                continue
            if response.status == http.client.SERVICE_UNAVAILABLE:
                refusals += 1
                self._wait_as_told(response)
                continue
            if response.status != http.client.OK:
                reason = f"{response.status} {content[:200].decode(errors='replace')}"
                self.failures.append(Failure(request.id, due_at, reason))
                return connection
            answered = json.loads(content)
            rows = answered["predictions"] if not request.is_image else [answered]
            self.answers.append(
                Answer(
                    request_id=request.id,
                    environment=answered["environment"],
                    group=request.group,
                    logits=request.logits,
                    prediction_ids=tuple(UUID(row["prediction_id"]) for row in rows),
                    decisions=tuple(row["decision"] for row in rows),
                    probabilities=np.array([_values(row["probabilities"]) for row in rows]),
                    head_version=answered["head_version"],
                    worker=response.headers["X-Lifelong-Worker"],
                    due_at=due_at,
                    sent_at=sent_at,
                    received_at=time.monotonic(),
                    resets=resets,
                    refusals=refusals,
                    is_image=request.is_image,
                )
            )
            return connection
        self.failures.append(Failure(request.id, due_at, f"no answer: {resets} resets, {refusals} refusals"))
        return connection

    def repeat(self, answers: Sequence[Answer]) -> list[str]:
        """Repeat answered requests, each on a separate connection.

        Returns:
            One sentence per request with another answer than before. 503 does not count: nothing was logged.
        """
        wrong: list[str] = []
        for answer in answers:
            request = self._request(int(answer.request_id.rpartition("-")[2]))
            with closing(self._renewed(None)) as connection:
                connection.request("POST", request.path, request.body, self._headers(request))
                response = connection.getresponse()
                content = response.read()
            if response.status == http.client.SERVICE_UNAVAILABLE:
                continue
            rows = json.loads(content).get("predictions", [])
            if tuple(UUID(row["prediction_id"]) for row in rows) != answer.prediction_ids:
                wrong.append(f"the repeated request {answer.request_id} got {content[:200].decode()}")
        return wrong

    def _request(self, number: int) -> Request:
        """One request; a subclass may send others."""
        return self._logits_request(number, ROWS)

    def _logits_request(self, number: int, rows: int) -> Request:
        logits, group, request_id = self._content(number, rows), self._group(number), self._id(number)
        document: dict[str, Any] = {
            "logits": logits.tolist(),
            "environment": self._environment,
            "request_id": request_id,
        }
        if group is not None:
            document["groups"] = [group] * len(logits)
        body = json.dumps(document).encode()
        return Request(request_id, "/v1/logits", "application/json", body, logits, group)

    def _headers(self, request: Request) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": request.content_type}

    def _id(self, number: int) -> str:
        return f"{self._environment}-{self._seed}-{number}"

    def _wait_as_told(self, response: http.client.HTTPResponse) -> None:
        told = response.headers["Retry-After"]
        if told is None:
            self.refusals_without_retry_after += 1
        time.sleep(min(float(told or 1), 1.0))

    def _content(self, number: int, rows: int) -> Logits:
        """Logits that are unique to the request, so that a row of the log identifies it."""
        rng = np.random.default_rng((self._seed, number))
        labels = rng.choice(CLASSES, size=rows, p=self.prevalence)
        logits: NDArray[np.float32] = (2 * np.eye(CLASSES)[labels] + rng.normal(size=(rows, CLASSES))).astype(
            np.float32
        )
        return logits

    def _group(self, number: int) -> str | None:
        """Group of every third request, unique to this environment; None for the others."""
        return f"{self._environment}-{number % GROUPS}" if number % 3 == 0 else None


def _values(numbers: Sequence[float] | Mapping[str, float]) -> list[float]:
    """Numbers by class in the order of the classes; answers to images have their names."""
    return list(numbers.values()) if isinstance(numbers, Mapping) else list(numbers)
