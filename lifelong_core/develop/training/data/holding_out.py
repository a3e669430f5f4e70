"""A part of the training split that is held out of a training."""

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.develop.training.data.cases import Cases
from lifelong_core.develop.training.data.leaks import tied_units
from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.data.splits import split_cases
from lifelong_core.develop.training.recipe import SplitName

_READ_AT_ONCE = 256


def hold_out(images: PreparedImages, share: float, *, seed: int) -> tuple[PreparedImages, NDArray[np.int64]]:
    """Divide the training split by group and identical image, with every class in its share.

    Args:
        images: of the task.
        share: of the training images that are held out.
        seed: of the division.

    Returns:
        The images with a training split that lacks the held-out ones, and the positions of these.

    Raises:
        InvalidInputError: a part would have no image of a class.
    """
    training = images.splits["training"]
    positions: list[int] = training.tolist()
    cases = Cases(
        tuple(Entry(images.names[at]) for at in positions),
        images.class_names,
        images.labels[training],
        tuple(None if images.groups is None else images.groups[at] for at in positions),
        None,
    )
    shares: dict[SplitName, float] = {"training": 1 - share, "validation": share}
    parts = split_cases(cases, tied_units(cases, _digests(images, training)), shares, seed=seed)
    remaining = {**images.splits, "training": training[parts["training"]]}
    return replace(images, splits=remaining), training[parts["validation"]]


def _digests(images: PreparedImages, positions: NDArray[np.int64]) -> list[str]:
    """Of the pixels of each image."""
    return [
        hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest()
        for begin in range(0, len(positions), _READ_AT_ONCE)
        for pixels in images.pixels(positions[begin : begin + _READ_AT_ONCE]).numpy()
    ]
