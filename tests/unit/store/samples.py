"""Small valid values for the tests of the store, and processes that share one store."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.store import (
    Cycle,
    HeadRecord,
    LogEntry,
    LogPosition,
    Model,
    Prediction,
    RequestKey,
    Store,
    new_prediction_id,
    register_calibration,
)

CLASSES = ("healthy", "benign", "malignant")
COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def calibration(seed: int = 0, samples: int = 120) -> LabeledLogits:
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % 3
    return LabeledLogits(2 * np.eye(3)[labels] + rng.normal(size=(samples, 3)), labels)


def blurred(labelled: LabeledLogits) -> LabeledLogits:
    """What another preprocessing makes of the same cases."""
    noise = np.random.default_rng(9).normal(scale=2.0, size=labelled.logits.shape)
    return LabeledLogits(labelled.logits + noise, labelled.labels)


def head(bias: float = 0.0) -> PostProcessingHead:
    return PostProcessingHead(1.0, [bias, 0.0, 0.0], COSTS, [0.5, 0.3, 0.2], CLASSES)


def add_model(store: Store, name: str = "dermatology", task: str = "lesions") -> Model:
    if task not in {known.name for known in store.tasks.list()}:
        store.tasks.add(task, CLASSES, COSTS, actor="tests")
    return store.models.add(task, name, kind="external", actor="tests")


def add_serving_model(store: Store) -> tuple[Model, HeadRecord]:
    model = add_model(store)
    return model, register_calibration(store, model.reference, calibration(), actor="tests")


def record_report(store: Store, model: Model, *, against: str, advice: str) -> None:
    """Record a promotion report, as the job of a comparison does."""
    headline = {"reject": "Do not promote: it is worse", "decide": "A person has to decide"}[advice]
    store.jobs.submit("compare", {}, actor="ann")
    claimed = store.jobs.claim("monitor", kinds=("compare",), lease_seconds=60)
    assert claimed is not None
    result = {"model": model.reference, "against": against, "advice": advice, "headline": headline}
    store.jobs.succeed(claimed, result | {"result": "a digest", "report": "another"})


def prediction(
    model_id: int = 1,
    environment: str = "default",
    *,
    prediction_id: UUID | None = None,
    decision: int = 0,
    group_hash: bytes | None = None,
    head_version: int = 1,
) -> Prediction:
    identity = prediction_id or new_prediction_id()
    logits = np.random.default_rng(identity.int % 2**32).normal(size=3).astype(np.float32)
    return Prediction(identity, model_id, environment, head_version, decision, logits, group_hash)


def entry(
    request_id: str | None = None, *, predictions: int = 1, model_id: int = 1, environment: str = "default"
) -> LogEntry:
    key = None if request_id is None else RequestKey(model_id, environment, request_id)
    rows = tuple(prediction(model_id, environment) for _ in range(predictions))
    return LogEntry(rows, key, b"digest of the body" if key else b"")


def ids_of(entries: list[LogEntry]) -> list[UUID]:
    return [row.id for one in entries for row in one.predictions]


def read_all(store: Store, *, limit: int = 3, position: LogPosition | None = None) -> Iterator[UUID]:
    """Every id behind the position, as a reader that comes back until nothing is left."""
    while True:
        rows, position = store.predictions.read_since(position, limit=limit)
        if not rows:
            return
        yield from (row.id for row in rows)


def cycle(
    model: Model, *, due_at: datetime | None = None, outcome: str = "keep", head_version: int = 1
) -> Cycle:
    due = due_at or datetime(2026, 1, 1, tzinfo=UTC)
    return Cycle(
        id=new_prediction_id(),
        model_id=model.id,
        environment="site-a",
        due_at=due,
        started_at=due + timedelta(seconds=1),
        finished_at=due + timedelta(seconds=2, microseconds=123456),
        outcome=outcome,  # type: ignore[arg-type]
        report={"outcome": outcome, "values": [0.1, 1e-9, None]},
        window_samples=500,
        log_position=17,
        head_version=head_version,
        published_version=None,
    )


@contextlib.contextmanager
def started_together(script: str, *arguments: Sequence[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes of one script, one for each sequence of arguments, all of which have said "ready"."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-W", "error", "-c", script]
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen([*command, *own], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            )
            for own in arguments
        ]
        assert [answer_of(process) for process in processes] == ["ready"] * len(processes)
        yield processes


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def answer_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().removesuffix("\n")
