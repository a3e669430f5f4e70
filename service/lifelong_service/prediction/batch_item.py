"""One request on its way through the stages of a micro-batch."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.arrays import Logits
from lifelong_core.deploy.head import HeadOutput
from lifelong_core.store.heads.records import HeadRecord
from lifelong_core.store.log.records import LogEntry, Prediction, RequestKey
from lifelong_core.store.registry.records import Model, Task
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.prediction.requests import ImageRequest, LogitsRequest

Job: TypeAlias = ImageRequest | LogitsRequest


@dataclass
class BatchItem:
    """A request and what the stages made of it; it leaves with an outcome: the body of the answer, or an error."""

    job: Job
    outcome: bytes | Exception | None = None
    key: RequestKey | None = None
    classifier: Classifier | None = None
    # Each of these is set by one stage and read by later ones only.
    model: Model = field(init=False)
    task: Task = field(init=False)
    head: HeadRecord = field(init=False)
    group_hashes: Sequence[bytes | None] = field(init=False)
    pixels: NDArray[np.float32] = field(init=False)
    logits: Logits = field(init=False)
    output: HeadOutput = field(init=False)
    predictions: Sequence[Prediction] = field(init=False)
    entry: LogEntry = field(init=False)


def group_by(works: Sequence[BatchItem], key: Callable[[BatchItem], Hashable]) -> list[list[BatchItem]]:
    """Those with the same key together, in order."""
    groups: defaultdict[Hashable, list[BatchItem]] = defaultdict(list)
    for work in works:
        groups[key(work)].append(work)
    return list(groups.values())
