"""Maps of a segmentation model, read in blocks of pixels."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.arrays import PROBABILITY_TOLERANCE, Integers, Logits
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.mistaken_probabilities import HALF_PRECISION_TOLERANCE

BLOCK_PIXELS = 1 << 15
"""Pixels that are processed at once: with their intermediate results they fit into the cache of a processor."""
MOST_CLASSES = 64
"""The sums of a case grow with the square of the number of classes."""

_HALF_STEP = 6e-8
_SINGLE_STEP = 1.2e-38
"""In the place of the probability 0, whose logarithm is infinite: the smallest numbers of float16 and float32."""


class PixelBlock(NamedTuple):
    """Successive pixels of a case."""

    scores: NDArray[np.floating[Any]]
    """shape (C, P), probabilities or logits"""
    labels: NDArray[np.integer[Any] | np.bool_] | None
    """shape (P,), true classes 0..C-1"""


class SegmentationMap(Protocol):
    """Probabilities or logits of all pixels of a case, perhaps with their true classes.

    Implementations may read a file block by block: only one block is in memory at a time.
    """

    @property
    def name(self) -> str:
        """Name in error messages, such as the path of the file."""
        ...

    @property
    def group(self) -> str | None:
        """Key of the group (patient) whose cases are dependent; None: a group of its own."""
        ...

    @property
    def classes(self) -> int:
        """Number of classes C, 2..64."""
        ...

    @property
    def is_logits(self) -> bool:
        """Whether the scores are logits, not probabilities."""
        ...

    def blocks(self) -> Iterator[PixelBlock]:
        """All pixels, each in one block, at most `BLOCK_PIXELS` in each."""
        ...


@dataclass(frozen=True, eq=False)
class SegmentationCase:
    """A case in memory, or memory-mapped.

    Examples:
        >>> case = SegmentationCase(np.full((2, 4, 5), 0.5), labels=np.zeros((4, 5), dtype=int), name="a")
        >>> case.classes, [block.scores.shape for block in case.blocks()]
        (2, [(2, 20)])
    """

    scores: NDArray[np.floating[Any]]
    """shape (C, ...), C classes and one or more axes of pixels; float16, float32 or float64"""
    labels: NDArray[np.integer[Any] | np.bool_] | None = None
    """shape (...), true classes 0..C-1; None: not known"""
    name: str = "case"
    group: str | None = None
    is_logits: bool = False

    def __post_init__(self) -> None:
        """Check types and shapes.

        Raises:
            InvalidInputError: a type or a shape does not fit.
        """
        check_scores(self.scores.shape, self.scores.dtype, name=self.name)
        if self.labels is not None:
            check_labels(self.labels.shape, self.labels.dtype, self.scores.shape, name=self.name)

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.scores.shape[0]

    def blocks(self) -> Iterator[PixelBlock]:
        """All pixels, each in one block."""
        scores = self.scores.reshape(self.classes, -1)
        labels = None if self.labels is None else self.labels.reshape(-1)
        for start in range(0, scores.shape[1], BLOCK_PIXELS):
            rows = slice(start, start + BLOCK_PIXELS)
            yield PixelBlock(scores[:, rows], None if labels is None else labels[rows])


def check_scores(shape: tuple[int, ...], dtype: np.dtype[Any], *, name: str) -> None:
    """Make sure that an array has the type and the shape of a map.

    Raises:
        InvalidInputError: it has not.
    """
    if dtype.kind != "f":
        raise InvalidInputError(
            f"{name}: expected floating-point numbers, got {dtype}.",
            field="probabilities",
            hint="Write the softmax output or the logits of the network as float16 or float32.",
        )
    if len(shape) < 2 or not 2 <= shape[0] <= MOST_CLASSES or min(shape) < 1:
        raise InvalidInputError(
            f"{name}: expected shape (C, ...) with 2 to {MOST_CLASSES} classes and at least one pixel, got {shape}.",
            field="probabilities",
            hint="The first axis is the class, e.g. (2, 256, 256); move it with numpy.moveaxis(array, -1, 0).",
        )


def check_labels(shape: tuple[int, ...], dtype: np.dtype[Any], scores: tuple[int, ...], *, name: str) -> None:
    """Make sure that an array has the type and the shape of the labels of a map.

    Raises:
        InvalidInputError: it has not.
    """
    if dtype.kind not in "biu" or shape != scores[1:]:
        raise InvalidInputError(
            f"{name}: expected whole numbers of shape {scores[1:]}, got {dtype} of shape {shape}.",
            field="labels",
            hint="Give the class of each pixel, from 0.",
        )


def log_ratios(block: PixelBlock, *, is_logits: bool, name: str) -> tuple[Integers, Logits]:
    """Predicted classes (P,), and log p_j - log p_y' of each class j and the predicted class y', shape (C, P), <= 0.

    Raises:
        InvalidInputError: a number is not finite, or probabilities are negative or do not sum to 1.
    """
    scores = block.scores.astype(np.float32)
    if not np.isfinite(scores).all():
        raise InvalidInputError(
            f"{name}: a value is not a finite float32.",
            field="logits" if is_logits else "probabilities",
            hint="Leave out cases for which the network gave NaN or infinity.",
        )
    half = block.scores.dtype == np.float16
    if not is_logits:
        _check_probabilities(scores, HALF_PRECISION_TOLERANCE if half else PROBABILITY_TOLERANCE, name=name)
    predicted = block.scores.argmax(axis=0)
    if not is_logits:
        np.log(np.maximum(scores, _HALF_STEP if half else _SINGLE_STEP, out=scores), out=scores)
    scores -= scores.max(axis=0)
    return predicted, scores


def checked_labels(block: PixelBlock, *, classes: int, name: str) -> Integers | None:
    """The labels as int64, shape (P,).

    Raises:
        InvalidInputError: a label is no class.
    """
    if block.labels is None:
        return None
    low, high = int(block.labels.min()), int(block.labels.max())
    if low < 0 or high >= classes:
        raise InvalidInputError(
            f"{name}: expected classes in 0..{classes - 1}, got {low}..{high}.",
            field="labels",
            hint="Pixels without a label, such as 255, have no place here: give each pixel a class.",
        )
    return block.labels.astype(np.int64)


def _check_probabilities(scores: Logits, tolerance: float, *, name: str) -> None:
    sums = scores.sum(axis=0)
    if scores.min() >= 0 and np.abs(sums - 1).max() <= tolerance:
        return
    worst = float(sums[np.abs(sums - 1).argmax()])
    found = "a negative value" if scores.min() < 0 else f"a pixel whose probabilities sum to {worst:.6g}"
    raise InvalidInputError(
        f"{name}: expected probabilities that sum to 1 over the first axis, got {found}.",
        field="probabilities",
        hint="The first axis is the class, the background included. Give logits as the array logits.",
    )
