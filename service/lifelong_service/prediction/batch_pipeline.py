"""The stages of a micro-batch: choose the model, decode, infer, decide, log, answer.

A batch uses one snapshot of the registry and one log transaction. An error affects only its own request: each stage
continues with the others.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.head import HeadOutput
from lifelong_core.entities.registry import Model
from lifelong_core.images import model_input
from lifelong_core.store.lifecycle.privacy import group_hash
from lifelong_core.store.log.identifiers import new_prediction_ids
from lifelong_core.store.log.records import LogEntry, Prediction
from lifelong_core.values.errors import InvalidInputError, LifelongError, UnavailableError
from lifelong_service import metrics
from lifelong_service.clients.addresses import ANONYMOUS
from lifelong_service.prediction.batch_item import BatchItem, encode_outcome, group_by, run_stage
from lifelong_service.prediction.idempotency import Idempotency
from lifelong_service.prediction.prediction_log import PredictionLog
from lifelong_service.prediction.requests import CANARY, ImageRequest, LogitsRequest, PredictionRequest, Route
from lifelong_service.prediction.routing import Router, keys_of
from lifelong_service.prediction.shadow import ShadowImage
from lifelong_service.prediction.snapshot import Snapshot

logger = logging.getLogger(__name__)


class BatchPipeline:
    """Answers micro-batches, in the batcher's thread only.

    Args:
        settings: limits.
        log: stores predictions before they are answered.
        snapshot: the served registry and graphs; raises UnavailableError before the first one.
        group_key: secret key of the group hash; raises UnavailableError where this host lacks the right key.
        router: chooses the model of each request.
        shadows: takes the answered images that a shadow decides about, too.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        log: PredictionLog,
        snapshot: Callable[[], Snapshot],
        group_key: Callable[[], bytes],
        router: Router,
        shadows: Callable[[ShadowImage], None],
    ) -> None:
        self._settings = settings
        self._log = log
        self._snapshot = snapshot
        self._group_key = group_key
        self._router = router
        self._shadows = shadows
        self._idempotency = Idempotency(log.answered)

    def __call__(self, requests: Sequence[PredictionRequest]) -> list[bytes | Exception]:
        """Return one answer or error per request, in order; every answered prediction is in the log."""
        metrics.BATCH_SIZE.observe(len(requests))
        self._log.begin()
        items = [BatchItem(request) for request in requests]
        snapshot = self._snapshot()
        run_stage(items, lambda item: self._resolve(item, snapshot))
        # Inference is costly: repeated images are answered before it, repeated logits when the log rejects them, except
        # those that another model may have answered.
        images = [item for item in items if isinstance(item.request, ImageRequest) or len(item.keys) > 1]
        self._idempotency.answer_known(images, snapshot)
        left = [item for item in items if item.outcome is None]
        self._compute(left, snapshot)
        self._replace_failed_canaries(left, snapshot)
        self._idempotency.answer_failed(items, snapshot)
        self._decide(items)
        run_stage(items, self._ensure_environment)
        self._make_entries(items)
        self._keep(items, snapshot)
        run_stage(items, encode_outcome)
        self._offer_to_shadow(items)
        return [item.outcome if item.outcome is not None else RuntimeError("no outcome") for item in items]

    def _resolve(self, item: BatchItem, snapshot: Snapshot) -> None:
        request = item.request
        route = request.route if isinstance(request, ImageRequest) else None
        # The graph may have been released while the image was decoded.
        if route is None or route.model.id not in snapshot.classifiers:
            route = self._router.route(request, snapshot)
        self._take_route(item, route, snapshot)

    def _take_route(self, item: BatchItem, route: Route, snapshot: Snapshot) -> None:
        item.route, item.model, item.task = route, route.model, snapshot.task(route.model)
        item.keys = keys_of(route, item.request.context)

    def _compute(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Set the logits and the head of each item."""
        run_stage(items, lambda item: self._prepare(item, snapshot))
        self._infer(items)
        run_stage(items, self._check_logits)

    def _replace_failed_canaries(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Let the promoted model answer where a canary failed; an error of both is that of the request."""
        failed = [
            (item, item.route, item.outcome)
            for item in items
            if item.route.role == CANARY and isinstance(item.outcome, Exception)
        ]
        for item, route, _ in failed:
            item.outcome = item.classifier = None
            self._take_route(item, route.without_candidate(), snapshot)
        self._compute([item for item, _, _ in failed], snapshot)
        for item, route, error in failed:
            if item.outcome is None and route.rollout is not None:
                self._router.note_failure(route.rollout, route.model, error)

    def _prepare(self, item: BatchItem, snapshot: Snapshot) -> None:
        model = item.model
        # First, because a request with a group is refused without the key.
        item.group_hashes = self._group_hashes(item.request.groups)
        if isinstance(item.request, LogitsRequest):
            item.logits = item.request.logits
        else:
            item.classifier = snapshot.classifier(model)
            item.pixels = self._pixels(item.request, model)
        item.head = head = snapshot.registry.head_for(model, item.request.context.environment)
        self._idempotency.keep_head(head)

    def _pixels(self, request: ImageRequest, model: Model) -> NDArray[np.float32]:
        if request.fault is not None:
            raise request.fault
        route, preprocessing = request.route, model.preprocessing
        if preprocessing is None:
            raise TypeError("only models of kind onnx take images")
        if request.pixels is not None and route is not None and route.model.preprocessing == preprocessing:
            return request.pixels
        limit = self._settings.maximum_image_pixels
        with metrics.DECODE_SECONDS.time():
            return model_input(request.image, preprocessing, maximum_pixels=limit, declared=request.declared)

    def _infer(self, items: Sequence[BatchItem]) -> None:
        """Run each graph once over all its inputs of one shape; when that fails, once for each input."""
        images = [item for item in items if item.outcome is None and item.classifier is not None]
        for batch in group_by(images, lambda item: (item.model.id, item.pixels.shape)):
            try:
                _infer_together(batch)
            except UnavailableError as error:
                # The time limit of the whole batch is over: its images are not tried one by one.
                for item in batch:
                    item.outcome = error
                details = {"model": batch[0].model.reference, "images": len(batch), "reason": error.message}
                logger.error("inference was ended", extra={"details": details})  # noqa: TRY400 - expected
            except LifelongError:
                run_stage(batch, lambda item: _infer_together([item]))

    def _check_logits(self, item: BatchItem) -> None:
        logits = item.logits
        classes = len(item.task.class_names)
        if logits.shape[1] != classes:
            raise InvalidInputError(
                f"expected {classes} columns, one per class, got {logits.shape[1]}.",
                field="logits",
                hint="Check that the logits come from the named model.",
            )
        if not np.isfinite(logits).all():
            raise InvalidInputError(
                "the model gave NaN or infinity for this image.",
                field="image",
                hint="Nothing was logged. Keep the image and report it to the developers of the model.",
            )

    def _decide(self, items: Sequence[BatchItem]) -> None:
        """Apply each head once, to the rows of all its requests; a row's result does not depend on the others."""
        open_items = [item for item in items if item.outcome is None]
        for batch in group_by(open_items, lambda item: (item.head.model_id, item.head.version)):
            rows = np.concatenate([item.logits for item in batch])
            output = batch[0].head.head.apply(rows)
            begin = 0
            for item in batch:
                end = begin + item.request.samples
                item.output = HeadOutput(
                    probabilities=output.probabilities[begin:end],
                    decisions=output.decisions[begin:end],
                    expected_costs=output.expected_costs[begin:end],
                )
                begin = end

    def _ensure_environment(self, item: BatchItem) -> None:
        context = item.request.context
        creator = ANONYMOUS if context.token is None else context.token.name
        self._log.new_environments.ensure(context.environment, creator=creator, source=context.source)

    def _make_entries(self, items: Sequence[BatchItem]) -> None:
        open_items = [item for item in items if item.outcome is None]
        ids = iter(new_prediction_ids(sum(item.request.samples for item in open_items)))
        run_stage(open_items, lambda item: _make_entry(item, ids))

    def _group_hashes(self, groups: Sequence[str | None]) -> list[bytes | None]:
        if not any(groups):
            return [None] * len(groups)
        key = self._group_key()
        hashes = {group: group_hash(key, group) for group in set(groups) if group}
        return [hashes[group] if group else None for group in groups]

    def _keep(self, items: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Log all requests in one transaction; if the log refuses an entry, each request in a separate one."""
        waiting = [item for item in items if item.outcome is None]
        if not waiting:
            return
        began = time.perf_counter()
        try:
            again = self._append(waiting, snapshot)
        except UnavailableError as error:
            again = []
            for item in waiting:
                item.outcome = error
        except Exception as error:
            again = waiting
            logger.exception("a micro-batch could not be logged at once", exc_info=error)
        run_stage(again, lambda item: self._append_alone(item, snapshot))
        metrics.LOG_COMMIT_SECONDS.observe(time.perf_counter() - began)

    def _append(self, items: Sequence[BatchItem], snapshot: Snapshot) -> list[BatchItem]:
        """Log new requests and answer repeated ones.

        Returns:
            Repeated requests whose first answer has been erased.
        """
        for item, new in zip(items, self._log.append([item.entry for item in items]), strict=True):
            item.is_new = new
        _count(item for item in items if item.is_new)
        # An earlier request, perhaps in this batch, has the same key.
        repeated = [item for item in items if not item.is_new]
        self._idempotency.answer_rejected(repeated, snapshot)
        return [item for item in repeated if item.outcome is None]

    def _append_alone(self, item: BatchItem, snapshot: Snapshot) -> None:
        if self._append([item], snapshot):
            raise UnavailableError("a request with this id is being answered.", hint="Try again later.")

    def _offer_to_shadow(self, items: Sequence[BatchItem]) -> None:
        for item in items:
            request, rollout = item.request, item.route.rollout if item.is_new else None
            if rollout is not None and rollout.stage == "shadow" and isinstance(request, ImageRequest):
                self._shadows(
                    ShadowImage(
                        rollout,
                        request.image,
                        item.pixels,
                        item.model,
                        item.predictions[0],
                        item.entry.token_id,
                    )
                )


def _make_entry(item: BatchItem, ids: Iterator[UUID]) -> None:
    environment, version = item.request.context.environment, item.head.version
    rows = zip(item.logits, item.output.decisions.tolist(), item.group_hashes, strict=True)
    item.predictions = tuple(
        Prediction(next(ids), item.model.id, environment, version, decision, row, hashed)
        for row, decision, hashed in rows
    )
    digest = item.request.body_digest() if item.key is not None else b""
    token = item.request.context.token
    item.entry = LogEntry(item.predictions, item.key, digest, None if token is None else token.id)


def _count(items: Iterable[BatchItem]) -> None:
    """Count logged predictions, with one increment for each series."""
    counts = Counter[tuple[str, str, str, str]]()
    for item in items:
        names, environment = item.head.head.decision_names, item.request.context.environment
        reference, role = item.model.reference, item.route.role
        for decision, number in Counter(prediction.decision for prediction in item.predictions).items():
            counts[reference, environment, names[decision], role] += number
    for labels, number in counts.items():
        metrics.PREDICTIONS.labels(*labels).inc(number)


def _infer_together(items: Sequence[BatchItem]) -> None:
    classifier = items[0].classifier
    if classifier is None:
        raise TypeError("only images are inferred")
    with metrics.INFERENCE_SECONDS.time():
        logits = classifier.logits([item.pixels for item in items])
    for row, item in enumerate(items):
        item.logits = logits[row : row + 1]
