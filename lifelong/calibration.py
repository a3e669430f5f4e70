"""A calibration set from labelled images: the running service computes the logits, so nothing is preprocessed twice."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lifelong.api import Api
from lifelong_core.deploy import LabeledLogits
from lifelong_core.errors import InvalidInputError, LifelongError

SECONDS_PER_CALL = 1.0
LARGEST_BATCH = 32
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})


def labelled_images(folder: Path, class_names: list[str]) -> tuple[list[Path], list[int]]:
    """Image files in one subfolder per class, and their class indices.

    Raises:
        InvalidInputError: a class has no folder or no image.
    """
    files: list[Path] = []
    labels: list[int] = []
    for index, name in enumerate(class_names):
        members = sorted(path for path in (folder / name).glob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
        if not members:
            raise InvalidInputError(
                f"{folder / name} holds no image.",
                field="folder",
                mend=f"Make one subfolder per class, named {', '.join(class_names)}.",
            )
        files += members
        labels += [index] * len(members)
    return files, labels


def calibrate_with_images(
    api: Api, model: str, files: list[Path], labels: list[int], *, on_images: Callable[[int], None]
) -> dict[str, Any]:
    """Send images through the model, register their logits as its calibration set, and publish its first head.

    Args:
        api: the running service.
        model: reference of the model.
        files: image files.
        labels: their class indices.
        on_images: called with the number of images done.
    """
    logits: list[list[float]] = []
    size = 1
    while len(logits) < len(files):
        batch = files[len(logits) : len(logits) + size]
        started = time.monotonic()
        try:
            logits += api.logits_of(model, [path.read_bytes() for path in batch])
        except LifelongError as error:
            raise _with_file_name(error, batch) from error
        on_images(len(batch))
        # A slow model must not run into the service's time limit, a fast one need not wait for each answer.
        seconds_per_image = (time.monotonic() - started) / len(batch)
        size = int(np.clip(SECONDS_PER_CALL / seconds_per_image, 1, LARGEST_BATCH))
    labelled = LabeledLogits(np.asarray(logits, dtype=np.float32), np.asarray(labels))
    return api.add_calibration_set(model, labelled.to_bytes())


def _with_file_name(error: LifelongError, batch: list[Path]) -> LifelongError:
    """The service names images by their place in the call, a person by their file."""
    name, _, index = (error.field or "").partition(".")
    if name == "images" and index.isdecimal() and int(index) < len(batch):
        return InvalidInputError(error.message, field=str(batch[int(index)]), mend=error.mend)
    return error
