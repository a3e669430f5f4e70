"""What happens to a micro-batch: decode, infer, decide, log, answer. One transaction, one state of the registry.

A fault stays with the request that has it: every stage goes on with the others.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.arrays import Logits
from lifelong_core.deploy.head import HeadOutput
from lifelong_core.errors import (
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    LifelongError,
    UnavailableError,
)
from lifelong_core.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.identifiers import new_prediction_id
from lifelong_core.store.privacy import group_hash
from lifelong_core.store.records import (
    HeadRecord,
    LogEntry,
    Model,
    Prediction,
    RequestKey,
    StoredRequest,
    Task,
)
from lifelong_service import metrics
from lifelong_service.answers import Decided, decision_names, image_answer, logits_answer
from lifelong_service.images import decode, preprocess
from lifelong_service.inference import Classifier
from lifelong_service.jobs import ImageJob, LogitsJob
from lifelong_service.snapshot import Snapshot

Job: TypeAlias = ImageJob | LogitsJob

logger = logging.getLogger(__name__)


@dataclass
class _Work:
    """One request on its way through the stages; it leaves with an outcome: the body of the answer, or an error."""

    job: Job
    outcome: bytes | Exception | None = None
    key: RequestKey | None = None
    classifier: Classifier | None = None
    # Each of these is set by one stage and read by later ones only.
    model: Model = field(init=False)
    task: Task = field(init=False)
    head: HeadRecord = field(init=False)
    pixels: NDArray[np.float32] = field(init=False)
    logits: Logits = field(init=False)
    output: HeadOutput = field(init=False)
    predictions: Sequence[Prediction] = field(init=False)
    entry: LogEntry = field(init=False)


class Decider:
    """Works on micro-batches, in the batcher's thread only.

    Args:
        settings: limits.
        store: the open store; raises UnavailableError while there is none.
        snapshot: what is served now; raises UnavailableError before the first.
        group_key: secret key of the group hash.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Callable[[], Store],
        snapshot: Callable[[], Snapshot],
        group_key: Callable[[], bytes],
    ) -> None:
        self._settings = settings
        self._store = store
        self._snapshot = snapshot
        self._group_key = group_key
        self._environments: set[str] = set()
        self._old_heads: dict[tuple[int, int], HeadRecord] = {}

    def __call__(self, jobs: Sequence[Job]) -> list[bytes | Exception]:
        """One answer or error per job, in order; what is answered is committed to the log."""
        metrics.BATCH_SIZE.observe(len(jobs))
        works = [_Work(job) for job in jobs]
        snapshot = self._snapshot()
        self._each(works, lambda work: self._resolve(work, snapshot))
        self._each(works, lambda work: self._repeat(work, snapshot))
        self._each(works, lambda work: self._prepare(work, snapshot))
        self._infer(works)
        self._each(works, self._check_logits)
        self._decide(works)
        self._each(works, self._ensure_environment)
        self._each(works, self._make_entry)
        self._log(works, snapshot)
        self._each(works, self._answer)
        return [work.outcome if work.outcome is not None else RuntimeError("no outcome") for work in works]

    def _each(self, works: Sequence[_Work], stage: Callable[[_Work], None]) -> None:
        for work in works:
            if work.outcome is None:
                try:
                    stage(work)
                except Exception as error:  # noqa: BLE001 - it is raised to the one request that it belongs to
                    work.outcome = error

    def _resolve(self, work: _Work, snapshot: Snapshot) -> None:
        address = work.job.address
        work.model = model = snapshot.registry.resolve_model(address.model)
        work.task = snapshot.task(model)
        if address.request_id is not None:
            work.key = RequestKey(model.id, address.environment, address.request_id)

    def _repeat(self, work: _Work, snapshot: Snapshot) -> None:
        if work.key is not None:
            stored = self._store().predictions.request(work.key)
            if stored is not None:
                self._answer_again(work, stored, snapshot)

    def _answer_again(self, work: _Work, stored: StoredRequest, snapshot: Snapshot) -> None:
        """The answer that the first request with this key got, worked out anew from the log."""
        if stored.body_digest != work.job.body_digest():
            raise ConflictError(
                f"the request id {stored.key.request_id!r} was used for another body.",
                field="request_id",
                mend="Use a new request id for every new request.",
            )
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
        if key not in self._old_heads:  # heads are immutable, and there are few: one per swap
            self._old_heads[key] = self._store().heads.get(model.reference, version)
        return self._old_heads[key]

    def _prepare(self, work: _Work, snapshot: Snapshot) -> None:
        model = work.model
        if isinstance(work.job, LogitsJob):
            work.logits = work.job.logits
        else:
            work.classifier = snapshot.classifier(model)
            limit = self._settings.maximum_image_pixels
            image = decode(work.job.image, maximum_pixels=limit)
            work.pixels = preprocess(image, work.classifier.preprocessing, maximum_pixels=limit)
        work.head = snapshot.registry.head_for(model, work.job.address.environment)

    def _infer(self, works: Sequence[_Work]) -> None:
        """Run each graph once over all its inputs of one shape; when that fails, once for each input."""
        images = [work for work in works if work.outcome is None and work.classifier is not None]
        for batch in _grouped(images, lambda work: (work.model.id, work.pixels.shape)):
            try:
                _infer_together(batch)
            except LifelongError:
                self._each(batch, lambda work: _infer_together([work]))

    def _check_logits(self, work: _Work) -> None:
        logits = work.logits
        classes = len(work.task.class_names)
        if logits.shape[1] != classes:
            raise InvalidInputError(
                f"expected {classes} columns, one per class, got {logits.shape[1]}.",
                field="logits",
                mend="Check that the logits come from the model that is named.",
            )
        if not np.isfinite(logits).all():
            raise InvalidInputError(
                "the model gave NaN or infinity for this image.",
                field="image",
                mend="Nothing was logged. Keep the image for whoever made the model.",
            )

    def _decide(self, works: Sequence[_Work]) -> None:
        """Apply each head once, to the rows of all its requests; a row's result does not depend on the others."""
        open_works = [work for work in works if work.outcome is None]
        for batch in _grouped(open_works, lambda work: (work.head.model_id, work.head.version)):
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

    def _ensure_environment(self, work: _Work) -> None:
        name = work.job.address.environment
        if name not in self._environments:
            self._store().environments.ensure(name, limit=self._settings.maximum_environments)
            self._environments.add(name)

    def _make_entry(self, work: _Work) -> None:
        model, head, output = work.model, work.head, work.output
        hashes = self._group_hashes(work.job.groups)
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
            for row, decision, hashed in zip(work.logits, output.decisions, hashes, strict=True)
        )
        digest = work.job.body_digest() if work.key is not None else b""
        work.entry = LogEntry(work.predictions, work.key, digest)

    def _group_hashes(self, groups: Sequence[str | None]) -> list[bytes | None]:
        if not any(groups):
            return [None] * len(groups)
        key = self._group_key()
        hashes = {group: group_hash(key, group) for group in set(groups) if group}
        return [hashes[group] if group else None for group in groups]

    def _log(self, works: Sequence[_Work], snapshot: Snapshot) -> None:
        """Write all requests in one transaction; when the store refuses that, each in one of its own."""
        waiting = [work for work in works if work.outcome is None]
        if not waiting:
            return
        began = time.perf_counter()
        try:
            self._append(waiting, snapshot)
        except (UnavailableError, ConfigurationError) as error:
            for work in waiting:
                work.outcome = work.outcome or error
        except Exception as error:
            logger.exception("a micro-batch could not be logged in one transaction", exc_info=error)
            self._each(waiting, lambda work: self._append([work], snapshot))
        metrics.LOG_COMMIT_SECONDS.observe(time.perf_counter() - began)

    def _append(self, works: Sequence[_Work], snapshot: Snapshot) -> None:
        written = self._store().predictions.append([work.entry for work in works])
        for work, new in zip(works, written, strict=True):
            if new:
                self._count(work)
            else:  # another worker, or a request in this very batch, was first with the same key
                self._each([work], lambda work: self._repeat(work, snapshot))

    def _count(self, work: _Work) -> None:
        names = decision_names(work.head.head)
        for prediction in work.predictions:
            metrics.PREDICTIONS.labels(
                work.model.reference, prediction.environment, names[prediction.decision]
            ).inc()

    def _answer(self, work: _Work) -> None:
        decided = Decided(
            task=work.task,
            model=work.model,
            head=work.head,
            environment=work.job.address.environment,
            request_id=work.job.address.request_id,
            predictions=work.predictions,
            output=work.output,
        )
        work.outcome = logits_answer(decided) if isinstance(work.job, LogitsJob) else image_answer(decided)


def _infer_together(works: Sequence[_Work]) -> None:
    classifier = works[0].classifier
    if classifier is None:
        raise TypeError("only images are inferred")
    logits = classifier.logits([work.pixels for work in works])
    for row, work in enumerate(works):
        work.logits = logits[row : row + 1]


def _grouped(works: Sequence[_Work], key: Callable[[_Work], Hashable]) -> list[list[_Work]]:
    groups: defaultdict[Hashable, list[_Work]] = defaultdict(list)
    for work in works:
        groups[key(work)].append(work)
    return list(groups.values())
