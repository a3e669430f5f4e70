"""Features of a sample of images, batch by batch, in bounded memory."""

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lifelong_core.develop.features.backbone import Backbone, limit_threads
from lifelong_core.develop.features.dicom import decode_dicom
from lifelong_core.develop.features.result import UnreadableImage
from lifelong_core.develop.features.sources.entry import Entry, ImageSource, Opened, printable
from lifelong_core.develop.features.sources.limits import DEFAULT_LIMITS, Limits
from lifelong_core.images import FORMATS, decode, preprocess
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_core.values.preprocessing import Preprocessing

Stage: TypeAlias = Literal["list", "read", "fisher"]
Progress: TypeAlias = Callable[[Stage, int, int | None], None]
"""Called with the stage, the images so far, and their final number if it is known."""

MOST_NAMED = 20
"""Unreadable images that a report names."""

_MOST_DECODERS = 8


@dataclass(frozen=True)
class Batch:
    """Features of some images.

    Attributes:
        features: (n, m).
        entries: n, where the images lie.
        sizes: n, width times height of the stored images.
    """

    features: NDArray[np.float32]
    entries: tuple[Entry, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class DecodedImage:
    """One image, ready for the backbone.

    Attributes:
        entry: where it came from.
        pixels: (C, H, W), normalised; None: the image could not be read.
        size: width times height of the stored image; 0: it could not be read.
        problem: why the image could not be read; empty: it was.
    """

    entry: Entry
    pixels: NDArray[np.float32] | None = None
    size: int = 0
    problem: str = ""


class Extraction:
    """Reads images, decodes them in threads, and computes their features.

    At most twice as many images as decoders are held as files or pixels at once, beside one batch of the backbone.

    Args:
        source: of the images.
        backbone: what computes the features.
        preprocessing: of the images.
        batch_size: images that are computed at once.
        most_unreadable: largest share of the images that may be unreadable.
        limits: of each image.
    """

    def __init__(
        self,
        source: ImageSource,
        backbone: Backbone,
        preprocessing: Preprocessing,
        *,
        batch_size: int = 32,
        most_unreadable: float = 0.05,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if batch_size < 1:
            raise InvalidInputError(f"expected at least 1, got {batch_size}.", field="batch_size")
        if not 0 <= most_unreadable < 1:
            raise InvalidInputError(
                f"expected a share in [0, 1), got {most_unreadable}.", field="most_unreadable"
            )
        _expect_one_size(preprocessing)
        self._source = source
        self._backbone = backbone
        self._preprocessing = preprocessing
        self._batch_size = batch_size
        self._most_unreadable = most_unreadable
        self._limits = limits
        self.unreadable = 0
        """images that could not be read"""
        self.examples: list[UnreadableImage] = []
        """the first of them"""

    def run(
        self, chosen: Sequence[Entry], use: Callable[[Batch], None], *, progress: Progress | None = None
    ) -> None:
        """Compute the features of these images, in the order of the source; call it within `steady_process`.

        Args:
            chosen: entries of the source.
            use: called with each batch.
            progress: called after each batch.

        Raises:
            InvalidInputError: more images than allowed are unreadable; the message names some.
        """
        waiting: list[DecodedImage] = []
        done = 0
        for image in self.decode(chosen):
            done += 1
            if image.pixels is None:
                self._note(image, len(chosen))
            else:
                waiting.append(image)
            if len(waiting) == self._batch_size:
                use(self._computed(waiting))
                waiting = []
                _tell(progress, done, len(chosen))
        if waiting:
            use(self._computed(waiting))
        _tell(progress, done, len(chosen))

    def decode(self, chosen: Iterable[Entry]) -> Iterator[DecodedImage]:
        """Decode and preprocess these images, in the order of the source; call it within `steady_process`."""
        decoders = min(_MOST_DECODERS, usable_cores())
        running: deque[Future[DecodedImage]] = deque()
        with ThreadPoolExecutor(decoders, thread_name_prefix="decoder") as pool:
            for opened in self._source.read(chosen):
                running.append(pool.submit(decode_entry, opened, self._preprocessing, self._limits))
                if len(running) >= 2 * decoders:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()

    def _computed(self, images: Sequence[DecodedImage]) -> Batch:
        pixels = np.stack([image.pixels for image in images if image.pixels is not None])
        features = self._backbone.extract(pixels)
        if not np.isfinite(features).all():
            raise InvalidInputError(
                "the backbone gives features that are not finite.",
                field="weights",
                hint="The weights do not suit the preprocessing, or are broken.",
            )
        return Batch(features, tuple(image.entry for image in images), tuple(image.size for image in images))

    def _note(self, image: DecodedImage, expected: int) -> None:
        """Count an unreadable image.

        Raises:
            InvalidInputError: there are more than allowed.
        """
        self.unreadable += 1
        if len(self.examples) < MOST_NAMED:
            self.examples.append(
                UnreadableImage(name=printable(image.entry.name), problem=printable(image.problem))
            )
        if self.unreadable > self._most_unreadable * expected:
            named = "; ".join(f"{example.name}: {example.problem}" for example in self.examples[:3])
            raise InvalidInputError(
                f"more than {self._most_unreadable:.0%} of {expected} images are unreadable, such as {named}",
                field="images",
                hint="Repair or remove them, or allow a larger share.",
            )


@contextmanager
def steady_process(threads: int | None = None) -> Generator[None]:
    """Limit the threads of torch, and restore the filters of warnings at the end.

    Decoders silence warnings of their libraries. The filters belong to the whole process, so that threads which do so
    at the same time can restore each other's.

    Args:
        threads: of torch; None: one for each core of this process.
    """
    with limit_threads(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _expect_one_size(preprocessing: Preprocessing) -> None:
    resize = preprocessing.resize
    if preprocessing.centre_crop is None and (resize is None or resize.mode != "exact"):
        raise InvalidInputError(
            "expected resize in mode exact, or centre_crop: all inputs of a batch have one size.",
            field="preprocessing",
        )
    if preprocessing.layout != "NCHW":
        raise InvalidInputError("expected the layout NCHW, as torch has it.", field="preprocessing")


def _tell(progress: Progress | None, done: int, expected: int) -> None:
    if progress is not None:
        progress("read", done, expected)


def decode_entry(opened: Opened, preprocessing: Preprocessing, limits: Limits) -> DecodedImage:
    """Decode and preprocess one image, and close its file; a problem is noted, not raised."""
    entry, file = opened
    if isinstance(file, LifelongError):
        return DecodedImage(entry, problem=file.message)
    with file:
        try:
            image, size = _decode(entry, file, preprocessing, limits)
            pixels = preprocess(image, preprocessing, maximum_pixels=limits.pixels)
        except (LifelongError, OSError) as error:
            return DecodedImage(entry, problem=getattr(error, "message", None) or str(error))
    return DecodedImage(entry, pixels, size)


def open_image(opened: Opened, limits: Limits) -> Image.Image:
    """Decode one image in full, and close its file.

    Raises:
        LifelongError: the image cannot be read.
        OSError: its file cannot be read.
    """
    entry, file = opened
    if isinstance(file, LifelongError):
        raise file
    with file:
        return _decode(entry, file, None, limits)[0]


def _decode(
    entry: Entry, file: BinaryIO, preprocessing: Preprocessing | None, limits: Limits
) -> tuple[Image.Image, int]:
    """The image, and width times height before any reduction."""
    if entry.frame is not None:
        image = decode_dicom(file, entry.frame, maximum_pixels=limits.pixels)
        return image, image.width * image.height
    data = file.read(limits.file_bytes + 1)
    limits.check_file(len(data))
    image = decode(data, maximum_pixels=limits.pixels, target=preprocessing)
    with Image.open(BytesIO(data), formats=FORMATS) as header:
        return image, header.width * header.height
