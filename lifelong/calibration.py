"""A calibration set from labelled images: the running service computes the logits, so nothing is preprocessed twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lifelong.api import Api
from lifelong_core.deploy import LabeledLogits
from lifelong_core.errors import InvalidInputError

BATCH = 32
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
    for start in range(0, len(files), BATCH):
        batch = [path.read_bytes() for path in files[start : start + BATCH]]
        logits += api.logits_of(model, batch)
        on_images(len(batch))
    labelled = LabeledLogits(np.asarray(logits, dtype=np.float32), np.asarray(labels))
    return api.add_calibration_set(model, labelled.to_bytes())
