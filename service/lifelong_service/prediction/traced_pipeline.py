"""The stages of a micro-batch as spans of each of its requests; used only where tracing is on."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from lifelong_core.entities.registry import Model
from lifelong_core.runtime.tracing import note_span, span
from lifelong_service.prediction.batch_item import BatchItem
from lifelong_service.prediction.batch_pipeline import BatchPipeline
from lifelong_service.prediction.requests import ImageRequest, PredictionRequest
from lifelong_service.prediction.snapshot import Snapshot


class TracedPipeline(BatchPipeline):
    """Notes when each stage of a batch began and ended, and adds the spans when the batch is answered."""

    def __call__(self, requests: Sequence[PredictionRequest]) -> list[bytes | Exception]:
        """Answer a batch; see `BatchPipeline`."""
        self._stages: list[tuple[str, int, int]] = []
        self._logged: Sequence[BatchItem] = ()
        began = time.time_ns()
        answers = super().__call__(requests)
        items = {id(item.request): item for item in self._logged}
        for request in requests:
            context, queued_at = request.context.trace, request.context.queued_at
            if context is None:
                continue
            note_span("queue", context, queued_at, began, {"lifelong.batch": len(requests)})
            for name, begin, end in self._stages:
                note_span(name, context, begin, end, _attributes(name, items.get(id(request))))
        return answers

    def _pixels(self, request: ImageRequest, model: Model) -> NDArray[np.float32]:
        if request.pixels is not None:  # decoded, and traced, before the batch
            return super()._pixels(request, model)
        with span("decode", parent=request.context.trace):
            return super()._pixels(request, model)

    def _infer(self, items: Sequence[BatchItem]) -> None:
        with self._stage("infer"):
            super()._infer(items)

    def _decide(self, items: Sequence[BatchItem]) -> None:
        with self._stage("head"):
            super()._decide(items)

    def _keep(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        with self._stage("log"):
            super()._keep(items, snapshot)
        self._logged = items

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.time_ns()
        try:
            yield
        finally:
            self._stages.append((name, began, time.time_ns()))


def _attributes(stage: str, item: BatchItem | None) -> dict[str, str | int]:
    """Of the log's span, what leads from a trace to the prediction."""
    if stage != "log" or item is None or not item.is_new:
        return {}
    return {
        "lifelong.prediction_id": str(item.predictions[0].id),
        "lifelong.model": item.model.reference,
        "lifelong.environment": item.request.context.environment,
        "lifelong.head_version": item.head.version,
    }
