"""The shadow of a worker: a candidate decides about images that were answered, for the log only."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.entities.develop.rollouts import Rollout
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.store.log.identifiers import shadow_prediction_id
from lifelong_core.store.log.records import LogEntry, Prediction
from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service import metrics
from lifelong_service.prediction.requests import SHADOW
from lifelong_service.prediction.routing import Router
from lifelong_service.prediction.snapshot import Snapshot

IMAGES_AT_ONCE: Final = 8
"""Images of one log transaction. Each goes through the graph alone, so that no answer waits for a long run."""
CLOSING_SECONDS: Final = 0.5
"""Time limit at the end for the image in work."""
Decode: TypeAlias = Callable[[bytes, Preprocessing], NDArray[np.float32]]
Write: TypeAlias = Callable[[Sequence[LogEntry]], object]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ShadowImage:
    """An answered image.

    Attributes:
        rollout: the trial at the time of the answer.
        image: encoded bytes.
        pixels: the input of the model that answered.
        model: the model that answered.
        served: its logged prediction.
        token_id: id of the token of the request; None: no token.
    """

    rollout: Rollout
    image: bytes
    pixels: NDArray[np.float32]
    model: Model
    served: Prediction
    token_id: int | None

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return len(self.image) + self.pixels.nbytes


class ShadowQueue:
    """A queue of bounded length and size; an image that does not fit is dropped and counted. Threads may share it.

    Args:
        capacity: largest number of images; 0: none.
        maximum_bytes: largest memory of all images together.
    """

    def __init__(self, *, capacity: int, maximum_bytes: int) -> None:
        self._capacity = capacity
        self._maximum_bytes = maximum_bytes
        self._images: deque[ShadowImage] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._is_closed = False

    def __len__(self) -> int:
        """Number of waiting images."""
        return len(self._images)

    def offer(self, image: ShadowImage) -> None:
        """Add an image, or drop it if the queue is full. Never waits for a decision."""
        with self._changed:
            if len(self._images) >= self._capacity or self._bytes + image.size > self._maximum_bytes:
                metrics.DROPPED_SHADOWS.labels("full").inc()
                return
            self._images.append(image)
            self._bytes += image.size
            self._changed.notify()

    def take(self, maximum: int) -> list[ShadowImage]:
        """Wait for images and return the oldest ones; empty only when the queue is closed."""
        with self._changed:
            while not self._images and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                return []
            taken = [self._images.popleft() for _ in range(min(maximum, len(self._images)))]
            self._bytes -= sum(image.size for image in taken)
            return taken

    def close(self) -> None:
        """Drop all images and end the present wait."""
        with self._changed:
            self._is_closed = True
            self._images.clear()
            self._bytes = 0
            self._changed.notify_all()


@dataclass(frozen=True)
class _Decision:
    """A decision of the candidate: the log entry, and the labels of the metric that counts it."""

    entry: LogEntry
    labels: tuple[str, str, str, str]


class Shadow:
    """Takes images from the queue in a thread of its own and logs the decisions of the candidate.

    The id of each prediction follows from that of the served one, so a label of the one is a label of the other. During
    an outage of the database images are dropped: only answers go to the spool.

    Args:
        queue: of the answered images.
        snapshot: the served registry and graphs; images of a trial that is no shadow any more are left out.
        decode: from an image to the input of a model.
        write: writes to the prediction log; raises a LifelongError if it cannot.
        outage: why the database is not called; None: it is.
        router: told of failures.
    """

    def __init__(
        self,
        queue: ShadowQueue,
        *,
        snapshot: Callable[[], Snapshot],
        decode: Decode,
        write: Write,
        outage: Callable[[], str | None],
        router: Router,
    ) -> None:
        self._queue = queue
        self._snapshot = snapshot
        self._decode = decode
        self._write = write
        self._outage = outage
        self._router = router
        self._thread = BackgroundThread("shadow", self._run)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Drop the waiting images and end the thread; a run or call that hangs is not waited for."""
        self._queue.close()
        self._thread.close(CLOSING_SECONDS)

    def _run(self) -> None:
        while images := self._queue.take(IMAGES_AT_ONCE):
            try:
                self._decide(images)
            except Exception:
                metrics.DROPPED_SHADOWS.labels("failed").inc(len(images))
                logger.exception("images were not shown to the shadow")

    def _decide(self, images: Sequence[ShadowImage]) -> None:
        """Decide about the images and log the predictions."""
        if self._outage() is not None:
            metrics.DROPPED_SHADOWS.labels("outage").inc(len(images))
            return
        decisions = [decision for image in images if (decision := self._decision(image)) is not None]
        if not decisions:
            return
        try:
            self._write([decision.entry for decision in decisions])
        except LifelongError as error:
            metrics.DROPPED_SHADOWS.labels("outage").inc(len(decisions))
            logger.warning("a shadow cannot be logged", extra={"details": {"reason": str(error)}})
            return
        for decision in decisions:
            metrics.PREDICTIONS.labels(*decision.labels).inc()

    def _decision(self, image: ShadowImage) -> _Decision | None:
        """The candidate's decision about an image; None: the trial does not go on, or the candidate failed."""
        snapshot = self._snapshot()
        rollout = snapshot.registry.rollouts.get(image.rollout.task_id)
        if rollout is None or rollout.id != image.rollout.id or rollout.stage != "shadow":
            return None
        if self._router.is_suspended(rollout):
            return None
        candidate = snapshot.registry.models[rollout.model_id]
        try:
            head = snapshot.registry.head_for(candidate, image.served.environment)
            logits = self._logits(image, candidate, snapshot)
            output = head.head.apply(logits)
        except LifelongError as error:
            self._router.note_failure(rollout, candidate, error)
            return None
        return _decision_of(image, head, logits[0], int(output.decisions[0]), candidate.reference)

    def _logits(self, image: ShadowImage, candidate: Model, snapshot: Snapshot) -> Logits:
        """Logits of the candidate, shape (1, C).

        Raises:
            LifelongError: the image cannot be decoded for it, its graph fails, or they are not finite.
        """
        classifier = snapshot.classifier(candidate)
        has_pixels = image.model.preprocessing == candidate.preprocessing
        pixels = image.pixels if has_pixels else self._decode(image.image, classifier.preprocessing)
        logits = classifier.logits([pixels])
        if not np.isfinite(logits).all():
            raise InvalidInputError("the model gave NaN or infinity for this image.", field="image")
        return logits


def _decision_of(
    image: ShadowImage, head: HeadRecord, logits: Logits, decision: int, candidate: str
) -> _Decision:
    served = image.served
    prediction = Prediction(
        id=shadow_prediction_id(served.id),
        model_id=head.model_id,
        environment=served.environment,
        head_version=head.version,
        decision=decision,
        logits=logits,
        group_hash=served.group_hash,
    )
    labels = (candidate, served.environment, head.head.decision_names[decision], SHADOW)
    return _Decision(LogEntry((prediction,), token_id=image.token_id), labels)
