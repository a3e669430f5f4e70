"""Decoding of images: small ones within their micro-batch, other cheap ones as they arrive, in threads, and costly ones
in a separate process."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from lifelong_core.images import input_pixels, model_input, most_pixels
from lifelong_core.runtime.tracing import span
from lifelong_core.values.errors import (
    InvalidInputError,
    LifelongError,
    PayloadTooLargeError,
    UnavailableError,
)
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service import metrics
from lifelong_service.decoding.header import (
    ImageHeader,
    check_header,
    is_cheap,
    read_header,
    takes_much_memory,
)
from lifelong_service.decoding.process import DecodingProcess, Turns
from lifelong_service.prediction.requests import CANARY, ImageRequest, PredictionRequest, Route
from lifelong_service.prediction.snapshot import Snapshot

MAXIMUM_WAITING: Final = 4
"""Largest number of costly images of one worker that are decoded or wait; one more gets 503. All are answered within
the time limit of a request even if each takes its longest time, unless other workers decode large images."""
SMALL_PIXELS: Final = 16_384
"""Largest number of pixels of an image that is decoded within its micro-batch: another thread would save less time than
it costs."""
PIXELS_PER_SAMPLE: Final = 262_144
"""Pixels of one sample in a micro-batch; an image that is larger, or becomes larger for a loaded model, counts as
several, which bounds the pixels of a batch. Narrow images grow most: 1 x 100 pixels become 256 x 25,600."""


class ImageDecoder:
    """Decodes images within limits; one for each worker.

    Args:
        maximum_pixels: largest number of pixels of one image.
        turns: turns for large images, shared by the workers of this machine.
        route: chooses the model of a request.
    """

    def __init__(
        self, *, maximum_pixels: int, turns: Turns, route: Callable[[ImageRequest, Snapshot], Route]
    ) -> None:
        self._route = route
        self._maximum_pixels = maximum_pixels
        self._process = DecodingProcess(maximum_pixels=maximum_pixels, turns=turns)
        self._waiting = 0
        self._threads = anyio.CapacityLimiter(1)

    def close(self) -> None:
        """End the decoding process."""
        self._process.close()

    async def prepare(self, request: ImageRequest, snapshot: Snapshot) -> ImageRequest:
        """Decode a costly image; return the request with the pixels, or with the declared size of a cheap image.

        The result holds the model whose preprocessing was applied, or says that `decode_cheap` has to be called. An
        error of a request with an id is kept in the result, because the id may have been answered before, or belong to
        another body.

        Raises:
            InvalidInputError: the image is not permitted, or cannot be decoded.
            PayloadTooLargeError: it is too large, or takes too long.
            UnavailableError: too many costly images wait, or the machine is busy.
        """
        try:
            return await self._prepare(request, snapshot)
        except LifelongError as error:
            if request.context.request_id is None:
                raise
            return replace(request, fault=error, weight=0)

    async def _prepare(self, request: ImageRequest, snapshot: Snapshot) -> ImageRequest:
        header = self._checked_header(request.image)
        if is_cheap(header, len(request.image)):
            size = header.width, header.height
            # Of any model, because that of the request is not chosen yet.
            decoding = _weight(self._largest(most_pixels, size, snapshot))
            return ImageRequest(
                request.context,
                request.image,
                declared=size,
                weight=_weight(self._largest(input_pixels, size, snapshot)),
                preparation_weight=decoding if header.pixels > SMALL_PIXELS or decoding > 1 else 0,
            )
        route = self._route(request, snapshot)
        try:
            return await self._decoded(request, header, route, snapshot.classifier(route.model).preprocessing)
        except (InvalidInputError, PayloadTooLargeError):
            if route.role != CANARY:
                raise
            route = route.without_candidate()
            return await self._decoded(request, header, route, snapshot.classifier(route.model).preprocessing)

    def _largest(
        self, pixels: Callable[[Preprocessing, int, int], int], size: tuple[int, int], snapshot: Snapshot
    ) -> int:
        """The largest number of pixels that an image may have, over all models that may take it."""
        counts = (pixels(graph.preprocessing, *size) for graph in snapshot.classifiers.values())
        # A larger one is refused, which costs nothing.
        return max((count for count in counts if count <= self._maximum_pixels), default=0)

    async def _decoded(
        self, request: ImageRequest, header: ImageHeader, route: Route, preprocessing: Preprocessing
    ) -> ImageRequest:
        if self._waiting >= MAXIMUM_WAITING:
            raise UnavailableError(
                f"{self._waiting} large images wait to be decoded already.",
                field="image",
                hint="Try again later, send images at a lower resolution, or add workers.",
            )
        self._waiting += 1
        try:
            is_large = takes_much_memory(header, preprocessing)
            with metrics.DECODE_SECONDS.time(), span("decode"):
                pixels = await anyio.to_thread.run_sync(
                    partial(self._process.decode, request.image, preprocessing, is_large=is_large),
                    limiter=self._threads,
                )
        finally:
            self._waiting -= 1
        return replace(request, route=route, pixels=pixels, weight=_weight_of(pixels, preprocessing))

    def decode_cheap(self, request: PredictionRequest, snapshot: Snapshot) -> PredictionRequest:
        """Decode a cheap image in the calling thread; return the request with the pixels, or with its fault.

        Its weight is then exact.

        The micro-batch decodes the image itself if its model has no preprocessing now, or a canary cannot take it.
        """
        if not isinstance(request, ImageRequest) or request.declared is None:
            return request
        limit = self._maximum_pixels
        try:
            route = self._route(request, snapshot)
            preprocessing = snapshot.classifier(route.model).preprocessing
        except LifelongError:
            return request
        try:
            with metrics.DECODE_SECONDS.time():
                pixels = model_input(
                    request.image, preprocessing, maximum_pixels=limit, declared=request.declared
                )
        except LifelongError as fault:
            return request if route.role == CANARY else replace(request, route=route, fault=fault, weight=0)
        return replace(request, route=route, pixels=pixels, weight=_weight_of(pixels, preprocessing))

    def decode_now(self, image: bytes, preprocessing: Preprocessing) -> NDArray[np.float32]:
        """Return the model's input for one image, decoded in the calling thread or in the decoding process.

        Raises:
            LifelongError: as `prepare`.
        """
        header = self._checked_header(image)
        if is_cheap(header, len(image)):
            declared = (header.width, header.height)
            return model_input(image, preprocessing, maximum_pixels=self._maximum_pixels, declared=declared)
        is_large = takes_much_memory(header, preprocessing)
        return self._process.decode(image, preprocessing, is_large=is_large)

    def _checked_header(self, image: bytes) -> ImageHeader:
        header = read_header(image)
        check_header(header, maximum_pixels=self._maximum_pixels)
        return header


def _weight_of(pixels: NDArray[np.float32], preprocessing: Preprocessing) -> int:
    return _weight(pixels.size // preprocessing.channels)


def _weight(pixels: int) -> int:
    return max(1, math.ceil(pixels / PIXELS_PER_SAMPLE))
