"""Repeated requests: a request id that was answered before gets the same bytes again."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from lifelong_core.entities.heads import HeadRecord
from lifelong_core.store.log.records import RequestKey, StoredRequest
from lifelong_core.store.registry.records import Model
from lifelong_core.values.errors import ConflictError
from lifelong_service.prediction.answered_requests import AnsweredRequests
from lifelong_service.prediction.batch_item import BatchItem, encode_outcome, run_stage
from lifelong_service.prediction.requests import LogitsRequest
from lifelong_service.worker.snapshot import Snapshot

LookUp: TypeAlias = Callable[[set[RequestKey]], dict[RequestKey, StoredRequest]]


class Idempotency:
    """Sets the outcome of repeated requests, from the logged predictions of the first one.

    The same request id with another body is a conflict. Used in the batcher's thread only.

    Args:
        answered: finds answered requests.
    """

    def __init__(self, answered: AnsweredRequests) -> None:
        self._answered = answered
        self._heads: dict[tuple[int, int], HeadRecord] = {}

    def keep_head(self, head: HeadRecord) -> None:
        """Keep a head for repetitions after it is replaced: heads are immutable and few, one per swap."""
        self._heads[head.model_id, head.version] = head

    def answer_known(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Answer repeated requests before any costly work, as far as they are known now."""
        self._answer(items, snapshot, self._answered.find, lambda item: item.keys)

    def answer_rejected(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Answer the requests whose entries the log rejected because their request ids are taken."""
        self._answer(items, snapshot, self._answered.first_answers, lambda item: item.keys[:1])

    def answer_failed(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Answer repeated logits that failed before they reached the log; the others keep their errors."""
        failed = [
            (item, item.outcome)
            for item in items
            if isinstance(item.outcome, Exception)
            and item.key is not None
            and isinstance(item.request, LogitsRequest)
        ]
        for item, _ in failed:
            item.outcome = None
        self.answer_known([item for item, _ in failed], snapshot)
        for item, error in failed:
            if item.outcome is None:
                item.outcome = error

    def _answer(
        self,
        items: Sequence[BatchItem],
        snapshot: Snapshot,
        look_up: LookUp,
        keys_of: Callable[[BatchItem], Sequence[RequestKey]],
    ) -> None:
        keyed = [item for item in items if item.outcome is None and item.keys]
        if not keyed:
            return
        try:
            stored = look_up({key for item in keyed for key in keys_of(item)})
        except Exception as error:  # noqa: BLE001 - raised to its requests
            for item in keyed:
                item.outcome = error
            return
        for item in keyed:
            found = [stored[key] for key in keys_of(item) if key in stored]
            if found:
                first = min(found, key=StoredRequest.age)
                run_stage([item], lambda item, first=first: self._answer_again(item, first, snapshot))

    def _answer_again(self, item: BatchItem, stored: StoredRequest, snapshot: Snapshot) -> None:
        if stored.body_digest != item.request.body_digest():
            raise ConflictError(
                f"the request id {stored.key.request_id!r} was used for another body.",
                field="request_id",
                hint="Use a new request id for every new request.",
            )
        if len(stored.predictions) != item.request.samples:
            return  # its rows are being deleted, and the key with the last ones
        item.model = snapshot.registry.models[stored.key.model_id]
        item.head = self._head(item.model, stored.predictions[0].head_version, snapshot)
        item.predictions = stored.predictions
        item.output = item.head.head.apply(np.stack([prediction.logits for prediction in stored.predictions]))
        encode_outcome(item)

    def _head(self, model: Model, version: int, snapshot: Snapshot) -> HeadRecord:
        for (model_id, _), record in snapshot.registry.heads.items():
            if model_id == model.id and record.version == version:
                return record
        key = (model.id, version)
        if key not in self._heads:
            self._heads[key] = self._answered.head(model.reference, version)
        return self._heads[key]
