"""What happens to a micro-batch: decode, infer, decide, log, answer. One state of the registry, logged at once.

A fault stays with the request that has it: every stage goes on with the others.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.head import HeadOutput
from lifelong_core.errors import ConflictError, InvalidInputError, LifelongError, UnavailableError
from lifelong_core.preprocessing import Preprocessing
from lifelong_core.settings import Settings
from lifelong_core.store.heads.records import HeadRecord
from lifelong_core.store.lifecycle.privacy import group_hash
from lifelong_core.store.log.identifiers import new_prediction_id
from lifelong_core.store.log.records import LogEntry, Prediction, RequestKey, StoredRequest
from lifelong_core.store.registry.records import Model
from lifelong_service import metrics
from lifelong_service.prediction.answers import DecidedRequest, decision_names, image_answer, logits_answer
from lifelong_service.prediction.batch_item import BatchItem, Job, group_by
from lifelong_service.prediction.images import decode, preprocess
from lifelong_service.prediction.prediction_log import PredictionLog
from lifelong_service.prediction.requests import ANONYMOUS, ImageRequest, LogitsRequest
from lifelong_service.worker.snapshot import Snapshot

LookUp: TypeAlias = Callable[[set[RequestKey]], dict[RequestKey, StoredRequest]]

logger = logging.getLogger(__name__)


class BatchPipeline:
    """Works on micro-batches, in the batcher's thread only.

    Args:
        settings: limits.
        log: where predictions are kept before they are answered.
        snapshot: what is served now; raises UnavailableError before the first.
        group_key: secret key of the group hash; raises UnavailableError where this host has not the right one.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        log: PredictionLog,
        snapshot: Callable[[], Snapshot],
        group_key: Callable[[], bytes],
    ) -> None:
        self._settings = settings
        self._log = log
        self._snapshot = snapshot
        self._group_key = group_key
        self._heads: dict[tuple[int, int], HeadRecord] = {}

    def __call__(self, jobs: Sequence[Job]) -> list[bytes | Exception]:
        """One answer or error per job, in order; what is answered is in the log."""
        metrics.BATCH_SIZE.observe(len(jobs))
        self._log.begin()
        works = [BatchItem(job) for job in jobs]
        snapshot = self._snapshot()
        self._each(works, lambda work: self._resolve(work, snapshot))
        # Nothing is inferred twice; whether logits were answered before, the log finds out when it keeps them.
        self._repeat([work for work in works if isinstance(work.job, ImageRequest)], snapshot, self._log.find)
        self._each(works, lambda work: self._prepare(work, snapshot))
        self._infer(works)
        self._each(works, self._check_logits)
        self._repeat_failed(works, snapshot)
        self._decide(works)
        self._each(works, self._ensure_environment)
        self._each(works, self._make_entry)
        self._keep(works, snapshot)
        self._each(works, self._answer)
        return [work.outcome if work.outcome is not None else RuntimeError("no outcome") for work in works]

    def _each(self, works: Sequence[BatchItem], stage: Callable[[BatchItem], None]) -> None:
        for work in works:
            if work.outcome is None:
                try:
                    stage(work)
                except Exception as error:  # noqa: BLE001 - it is raised to the one request that it belongs to
                    work.outcome = error

    def _resolve(self, work: BatchItem, snapshot: Snapshot) -> None:
        address = work.job.address
        work.model = model = snapshot.registry.resolve_model(address.model)
        work.task = snapshot.task(model)
        if address.request_id is not None:
            work.key = RequestKey(model.id, address.environment, address.request_id)

    def _repeat(self, works: Sequence[BatchItem], snapshot: Snapshot, look_up: LookUp) -> None:
        """Answer the requests that were answered before."""
        keyed = [(work, work.key) for work in works if work.outcome is None and work.key is not None]
        if not keyed:
            return
        try:
            stored = look_up({key for _, key in keyed})
        except Exception as error:  # noqa: BLE001 - it is raised to the requests that it belongs to
            for work, _ in keyed:
                work.outcome = error
            return
        for work, key in keyed:
            if key in stored:
                self._each([work], lambda work, first=stored[key]: self._answer_again(work, first, snapshot))

    def _repeat_failed(self, works: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Answer again what was answered before and could not be answered now; see to it that another body under the
        same request id is called a conflict."""
        faults = [
            (work, work.outcome)
            for work in works
            if isinstance(work.outcome, Exception)
            and work.key is not None
            and isinstance(work.job, LogitsRequest)
        ]
        for work, _ in faults:
            work.outcome = None
        self._repeat([work for work, _ in faults], snapshot, self._log.find)
        for work, fault in faults:
            if work.outcome is None:
                work.outcome = fault

    def _answer_again(self, work: BatchItem, stored: StoredRequest, snapshot: Snapshot) -> None:
        """The answer that the first request with this key got, worked out anew from the log."""
        if stored.body_digest != work.job.body_digest():
            raise ConflictError(
                f"the request id {stored.key.request_id!r} was used for another body.",
                field="request_id",
                hint="Use a new request id for every new request.",
            )
        if len(stored.predictions) != work.job.samples:
            return  # its rows are just being deleted, and the key goes with the last ones
        model = work.model
        work.head = self._head(model, stored.predictions[0].head_version, snapshot)
        work.predictions = stored.predictions
        work.output = work.head.head.apply(np.stack([prediction.logits for prediction in stored.predictions]))
        self._answer(work)

    def _head(self, model: Model, version: int, snapshot: Snapshot) -> HeadRecord:
        for (model_id, _), record in snapshot.registry.heads.items():
            if model_id == model.id and record.version == version:
                return record
        key = (model.id, version)
        if key not in self._heads:
            self._heads[key] = self._log.head(model.reference, version)
        return self._heads[key]

    def _prepare(self, work: BatchItem, snapshot: Snapshot) -> None:
        model = work.model
        # Before anything else: without the key a request with a group is refused.
        work.group_hashes = self._group_hashes(work.job.groups)
        if isinstance(work.job, LogitsRequest):
            work.logits = work.job.logits
        else:
            work.classifier = snapshot.classifier(model)
            work.pixels = self._pixels(work.job, work.classifier.preprocessing)
        work.head = head = snapshot.registry.head_for(model, work.job.address.environment)
        # For answers given again when it is not served any longer: heads are immutable and few, one per swap.
        self._heads[model.id, head.version] = head

    def _pixels(self, job: ImageRequest, preprocessing: Preprocessing) -> NDArray[np.float32]:
        if job.fault is not None:
            raise job.fault
        if job.pixels is not None:
            return job.pixels
        limit = self._settings.maximum_image_pixels
        image = decode(job.image, maximum_pixels=limit, declared=job.declared)
        return preprocess(image, preprocessing, maximum_pixels=limit)

    def _infer(self, works: Sequence[BatchItem]) -> None:
        """Run each graph once over all its inputs of one shape; when that fails, once for each input."""
        images = [work for work in works if work.outcome is None and work.classifier is not None]
        for batch in group_by(images, lambda work: (work.model.id, work.pixels.shape)):
            try:
                _infer_together(batch)
            except UnavailableError as error:
                # It took so long that nobody waits for the others of the batch either: they are not tried again.
                for work in batch:
                    work.outcome = error
                details = {"model": batch[0].model.reference, "images": len(batch), "reason": error.message}
                logger.error("inference was ended", extra={"details": details})  # noqa: TRY400 - expected
            except LifelongError:
                self._each(batch, lambda work: _infer_together([work]))

    def _check_logits(self, work: BatchItem) -> None:
        logits = work.logits
        classes = len(work.task.class_names)
        if logits.shape[1] != classes:
            raise InvalidInputError(
                f"expected {classes} columns, one per class, got {logits.shape[1]}.",
                field="logits",
                hint="Check that the logits come from the model that is named.",
            )
        if not np.isfinite(logits).all():
            raise InvalidInputError(
                "the model gave NaN or infinity for this image.",
                field="image",
                hint="Nothing was logged. Keep the image for whoever made the model.",
            )

    def _decide(self, works: Sequence[BatchItem]) -> None:
        """Apply each head once, to the rows of all its requests; a row's result does not depend on the others."""
        open_works = [work for work in works if work.outcome is None]
        for batch in group_by(open_works, lambda work: (work.head.model_id, work.head.version)):
            rows = np.concatenate([work.logits for work in batch])
            output = batch[0].head.head.apply(rows)
            begin = 0
            for work in batch:
                end = begin + work.job.samples
                work.output = HeadOutput(
                    probabilities=output.probabilities[begin:end],
                    decisions=output.decisions[begin:end],
                    expected_costs=output.expected_costs[begin:end],
                )
                begin = end

    def _ensure_environment(self, work: BatchItem) -> None:
        address = work.job.address
        creator = ANONYMOUS if address.token is None else address.token.name
        self._log.ensure_environment(address.environment, creator=creator, source=address.source)

    def _make_entry(self, work: BatchItem) -> None:
        model, head, output = work.model, work.head, work.output
        work.predictions = tuple(
            Prediction(
                id=new_prediction_id(),
                model_id=model.id,
                environment=work.job.address.environment,
                head_version=head.version,
                decision=int(decision),
                logits=row,
                group_hash=hashed,
            )
            for row, decision, hashed in zip(work.logits, output.decisions, work.group_hashes, strict=True)
        )
        digest = work.job.body_digest() if work.key is not None else b""
        token = work.job.address.token
        work.entry = LogEntry(work.predictions, work.key, digest, None if token is None else token.id)

    def _group_hashes(self, groups: Sequence[str | None]) -> list[bytes | None]:
        if not any(groups):
            return [None] * len(groups)
        key = self._group_key()
        hashes = {group: group_hash(key, group) for group in set(groups) if group}
        return [hashes[group] if group else None for group in groups]

    def _keep(self, works: Sequence[BatchItem], snapshot: Snapshot) -> None:
        """Log all requests at once; when an entry is refused, each by itself."""
        waiting = [work for work in works if work.outcome is None]
        if not waiting:
            return
        began = time.perf_counter()
        try:
            again = self._append(waiting, snapshot)
        except UnavailableError as error:
            again = []
            for work in waiting:
                work.outcome = error
        except Exception as error:
            again = waiting
            logger.exception("a micro-batch could not be logged at once", exc_info=error)
        self._each(again, lambda work: self._append_alone(work, snapshot))
        metrics.LOG_COMMIT_SECONDS.observe(time.perf_counter() - began)

    def _append(self, works: Sequence[BatchItem], snapshot: Snapshot) -> list[BatchItem]:
        """Log what is new and answer what is not.

        Returns:
            What is not new although there is no first answer any more: it was erased in between.
        """
        repeated: list[BatchItem] = []
        for work, new in zip(works, self._log.append([work.entry for work in works]), strict=True):
            if new:
                self._count(work)
            else:  # a request before, or one in this very batch, was first with the same key
                repeated.append(work)
        self._repeat(repeated, snapshot, self._log.first_answers)
        return [work for work in repeated if work.outcome is None]

    def _append_alone(self, work: BatchItem, snapshot: Snapshot) -> None:
        if self._append([work], snapshot):
            raise UnavailableError("a request with this id is being answered.", hint="Try again later.")

    def _count(self, work: BatchItem) -> None:
        names = decision_names(work.head.head)
        for prediction in work.predictions:
            metrics.PREDICTIONS.labels(
                work.model.reference, prediction.environment, names[prediction.decision]
            ).inc()

    def _answer(self, work: BatchItem) -> None:
        decided = DecidedRequest(
            task=work.task,
            model=work.model,
            head=work.head,
            environment=work.job.address.environment,
            request_id=work.job.address.request_id,
            predictions=work.predictions,
            output=work.output,
        )
        work.outcome = (
            logits_answer(decided) if isinstance(work.job, LogitsRequest) else image_answer(decided)
        )


def _infer_together(works: Sequence[BatchItem]) -> None:
    classifier = works[0].classifier
    if classifier is None:
        raise TypeError("only images are inferred")
    logits = classifier.logits([work.pixels for work in works])
    for row, work in enumerate(works):
        work.logits = logits[row : row + 1]
