"""One request on its way through the stages of a micro-batch."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.head import HeadOutput
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.log.records import LogEntry, Prediction, RequestKey
from lifelong_core.values.arrays import Logits
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.prediction.answers import DecidedRequest, image_answer, logits_answer
from lifelong_service.prediction.requests import LogitsRequest, PredictionRequest, Route


@dataclass
class BatchItem:
    """A request and the results of the stages; its outcome is the body of the answer, or an error."""

    request: PredictionRequest
    outcome: bytes | Exception | None = None
    keys: tuple[RequestKey, ...] = ()
    """under which the request may have been answered, its own first; empty without a request id"""
    is_new: bool = False
    """whether the log holds it since this batch"""
    classifier: Classifier | None = None
    # Each of these is set by one stage and read by later ones only.
    route: Route = field(init=False)
    model: Model = field(init=False)
    task: Task = field(init=False)
    head: HeadRecord = field(init=False)
    group_hashes: Sequence[bytes | None] = field(init=False)
    pixels: NDArray[np.float32] = field(init=False)
    logits: Logits = field(init=False)
    output: HeadOutput = field(init=False)
    predictions: Sequence[Prediction] = field(init=False)
    entry: LogEntry = field(init=False)

    @property
    def key(self) -> RequestKey | None:
        """The key under which the request is logged."""
        return self.keys[0] if self.keys else None


def group_by(items: Sequence[BatchItem], key: Callable[[BatchItem], Hashable]) -> list[list[BatchItem]]:
    """Return the items grouped by equal keys, in order."""
    groups: defaultdict[Hashable, list[BatchItem]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return list(groups.values())


def run_stage(items: Sequence[BatchItem], stage: Callable[[BatchItem], None]) -> None:
    """Run a stage on each item that has no outcome yet; an error becomes the outcome of its item."""
    for item in items:
        if item.outcome is None:
            try:
                stage(item)
            except Exception as error:  # noqa: BLE001 - raised to its request
                item.outcome = error


def encode_outcome(item: BatchItem) -> None:
    """Set the outcome to the JSON answer of a decided item."""
    context = item.request.context
    decided = DecidedRequest(
        task=item.task,
        model=item.model,
        head=item.head,
        environment=context.environment,
        request_id=context.request_id,
        predictions=item.predictions,
        output=item.output,
    )
    encode = logits_answer if isinstance(item.request, LogitsRequest) else image_answer
    item.outcome = encode(decided)
