"""Images that were answered and wait for the decision of a shadow."""

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lifelong_core.store.log.records import Prediction
from lifelong_core.store.registry.records import Model
from lifelong_core.store.rollouts.records import Rollout
from lifelong_service import metrics


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
