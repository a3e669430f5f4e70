"""A calibration set from labelled images: the running service computes the logits, so nothing is preprocessed twice."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lifelong.client import Client
from lifelong.labelled_images import LabelledImages
from lifelong_core.deploy import LabeledLogits
from lifelong_core.values.arrays import Integers
from lifelong_core.values.errors import InvalidInputError, LifelongError

SECONDS_PER_CALL = 1.0
LARGEST_BATCH = 32


def logits_of_images(
    api: Client,
    model: str,
    images: LabelledImages,
    *,
    groups: Integers | None = None,
    on_images: Callable[[int], None],
) -> LabeledLogits:
    """Send images through the model; nothing is stored.

    Args:
        api: the running service.
        model: reference of the model.
        images: image files and their classes.
        groups: shape (N,), which files belong together; None: none do.
        on_images: called with the number of images done.

    Raises:
        InvalidInputError: an image cannot be read; the message names its file.
        LifelongError: the service does not answer, or its workers preprocess images differently.
    """
    files = images.files
    logits: list[list[float]] = []
    digests: set[str | None] = set()
    size = 1
    while len(logits) < len(files):
        batch = files[len(logits) : len(logits) + size]
        contents = [_content(path) for path in batch]
        started = time.monotonic()
        try:
            rows, digest = api.logits_of(model, contents)
        except LifelongError as error:
            raise _with_file_name(error, batch) from error
        logits += rows
        digests.add(digest)
        if len(digests) > 1:
            raise LifelongError(
                "workers of the service preprocess images differently.",
                hint="Wait until all of them run the same version with the same libraries, then calibrate again.",
            )
        on_images(len(batch))
        # A slow model must not run into the service's time limit, a fast one need not wait for each answer.
        seconds_per_image = (time.monotonic() - started) / len(batch)
        size = int(np.clip(SECONDS_PER_CALL / seconds_per_image, 1, LARGEST_BATCH))
    values = np.asarray(logits, dtype=np.float32)
    return LabeledLogits(values, np.asarray(images.labels), groups, next(iter(digests)))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"the file cannot be read ({error.strerror}).", field=str(path)) from error


def _with_file_name(error: LifelongError, batch: tuple[Path, ...]) -> LifelongError:
    """Name the image by its file; the service names it by its index in the request."""
    name, _, index = (error.field or "").partition(".")
    if name == "images" and index.isdecimal() and int(index) < len(batch):
        return InvalidInputError(error.message, field=str(batch[int(index)]), hint=error.hint)
    return error
