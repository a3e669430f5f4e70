"""Sends image streams to the service over HTTP, as a clinic would, and keeps every answer."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import time
from typing import Any
from uuid import UUID

import httpx
import numpy as np
from numpy.typing import NDArray

from lifelong.client import TIMEOUT_SECONDS
from lifelong.client_messages import answer_of
from lifelong.demo.images import CLASS_NAMES, COSTS, Stream
from lifelong.label_import.rows import LabelRow, RejectedRow
from lifelong.label_import.sending import LabelImport, Poster
from lifelong_core.values.errors import LifelongError

CONNECTIONS = 8
MAXIMUM_TRIES = 10

LABELLED_SHARE = 0.2
"""Probability of each prediction to get a label."""
SOURCE = "pathology"


@dataclass(frozen=True)
class Answer:
    """The service's answer to one image."""

    prediction_id: UUID
    head_version: int
    decision: int
    probabilities: tuple[float, ...]
    received_at: float
    """seconds since the epoch"""


@dataclass(frozen=True)
class Answers:
    """The answers to a stream, in its order, with the true classes (N,)."""

    answers: tuple[Answer, ...]
    labels: NDArray[np.int64]
    refusals: int = 0
    """how often the service said 503 before it answered"""

    @classmethod
    def concatenate(cls, parts: "Sequence[Answers]") -> "Answers":
        """The answers of several streams, one after the other."""
        answers = tuple(answer for part in parts for answer in part.answers)
        labels = np.concatenate([part.labels for part in parts])
        return cls(answers, labels, refusals=sum(part.refusals for part in parts))

    @property
    def decisions(self) -> NDArray[np.int64]:
        """The decided classes, shape (N,)."""
        return np.array([answer.decision for answer in self.answers], dtype=np.int64)

    @property
    def prevalence(self) -> NDArray[np.float64]:
        """The true class shares, shape (3,)."""
        return np.bincount(self.labels, minlength=len(CLASS_NAMES)) / len(self.labels)

    @property
    def accuracy(self) -> float:
        """Share of right decisions."""
        return float(np.mean(self.decisions == self.labels))

    @property
    def expected_cost(self) -> float:
        """Mean cost of the decisions under the demo's cost matrix."""
        return float(np.mean(np.asarray(COSTS)[self.labels, self.decisions]))

    def received_at(self, count: int) -> float:
        """When `count` answers had been received, in seconds since the epoch."""
        return sorted(answer.received_at for answer in self.answers)[count - 1]

    def select(self, chosen: NDArray[np.bool_]) -> "Answers":
        """The answers where `chosen` (N,) is true."""
        return Answers(
            tuple(answer for answer, keep in zip(self.answers, chosen, strict=True) if keep),
            self.labels[chosen],
        )

    def in_order_of_arrival(self) -> "Answers":
        """The same answers, the first that was received first."""
        order = np.argsort([answer.received_at for answer in self.answers], kind="stable")
        return Answers(tuple(self.answers[place] for place in order), self.labels[order], self.refusals)

    def by_head(self, version: int) -> NDArray[np.bool_]:
        """Which answers came from this head version, shape (N,)."""
        return np.array([answer.head_version == version for answer in self.answers])


def send(url: str, token: str, environment: str, stream: Stream, *, on_answer: Callable[[], None]) -> Answers:
    """Send every image of the stream over a few parallel connections; `on_answer` after each answer.

    An image that is refused with 503 was not logged; it is sent again after the time that the service names.

    Raises:
        LifelongError: the service refused an image for good.
    """
    try:
        return asyncio.run(_send_all(url, token, environment, stream, on_answer))
    except ExceptionGroup as group:
        # Every connection fails for the same reason; one says it.
        raise group.exceptions[0] from group


async def _send_all(
    url: str, token: str, environment: str, stream: Stream, on_answer: Callable[[], None]
) -> Answers:
    answers: dict[int, Answer] = {}
    refusals: list[int] = []
    waiting = iter(enumerate(stream.files))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "image/png"}

    async def predict(client: httpx.AsyncClient, index: int, file: bytes) -> httpx.Response:
        tries = 1
        while True:
            response = await client.post("/v1/predict", params={"environment": environment}, content=file)
            if response.status_code != httpx.codes.SERVICE_UNAVAILABLE or tries == MAXIMUM_TRIES:
                return response
            tries += 1
            refusals.append(index)
            await asyncio.sleep(float(response.headers["Retry-After"]))

    async def connection(client: httpx.AsyncClient) -> None:
        for index, file in waiting:
            answers[index] = _answer(answer_of(await predict(client, index, file)))
            on_answer()

    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False) as client,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(CONNECTIONS):
            group.create_task(connection(client))
    ordered = tuple(answers[index] for index in range(len(stream.files)))
    return Answers(ordered, stream.labels, refusals=len(refusals))


def _answer(document: dict[str, Any]) -> Answer:
    return Answer(
        prediction_id=UUID(document["prediction_id"]),
        head_version=document["head_version"],
        decision=document["decision"],
        probabilities=tuple(document["probabilities"][name] for name in CLASS_NAMES),
        received_at=time(),
    )


def draw_labelled(answers: Answers, rng: np.random.Generator) -> Answers:
    """Draw each prediction with probability `LABELLED_SHARE`."""
    return answers.select(rng.random(len(answers.answers)) < LABELLED_SHARE)


def send_labels(api: Poster, labelled: Answers, on_labels: Callable[[int], None]) -> None:
    """Send the true classes of the predictions that `draw_labelled` drew.

    Args:
        api: connection to the service.
        labelled: predictions with their true classes.
        on_labels: called with the number of labels of each request.

    Raises:
        LifelongError: the service refused a label, or did not know a prediction.
    """
    pairs = zip(labelled.answers, labelled.labels, strict=True)
    rows = (LabelRow(line, _document(answer, label)) for line, (answer, label) in enumerate(pairs, start=1))
    LabelImport(api, _refuse).run(rows, on_labels)


def _document(answer: Answer, label: int) -> dict[str, Any]:
    return {
        "prediction_id": str(answer.prediction_id),
        "label": CLASS_NAMES[label],
        "source": SOURCE,
        "propensity": LABELLED_SHARE,
    }


def _refuse(row: RejectedRow) -> None:
    raise LifelongError(f"the label of prediction {row.prediction_id} was refused: {row.message}")
