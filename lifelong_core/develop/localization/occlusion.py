"""Where does a classifier look? Hide one patch after the other, and see how far the score of a class falls.

It needs nothing but logits, so it works for every model of the registry.
"""

from collections.abc import Callable
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import gaussian_blur

LogitsOf: TypeAlias = Callable[[NDArray[np.float32]], NDArray[np.floating]]
"""Logits (n, C) of preprocessed images (n, ...)."""
Fill: TypeAlias = Literal["mean", "blurred"]
"""What hides a patch: the mean colour of the image, or the image blurred by a Gaussian of the size of the patch."""
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of width and height."""

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
GRID = 8
LEAST_FALL = 0.1
"""Where no patch changes the odds of the class by more than about a tenth, no place matters."""
_MOST_VALUES = 2**22
"""of the images that are given to the model at once: 16 MiB, since its activations take a multiple of that"""


def occlusion_map(
    image: NDArray[np.float32],
    class_index: int,
    logits_of: LogitsOf,
    *,
    grid: int = GRID,
    box: Box = WHOLE,
    fill: Fill = "mean",
    layout: Literal["NCHW", "NHWC"] = "NCHW",
) -> Floats:
    """How far the log-odds of a class fall where a patch is hidden (Zeiler and Fergus, 2014), shape (grid, grid).

    Log-odds are those of the class against all others, so that a constant added to all logits changes nothing, and a
    probability close to 1 hides no fall. Negative where the hidden patch speaks against the class. The same arguments
    give the same map.

    Args:
        image: preprocessed, (C, H, W) or (H, W, C).
        class_index: of the class.
        logits_of: gives the logits of images; it is called with several at once.
        grid: the box is cut into grid x grid patches.
        box: the part of the image that the map covers.
        fill: what hides a patch.
        layout: of the image.

    Raises:
        InvalidInputError: the image has fewer pixels than patches, there is no such class, or a logit is not finite.
    """
    channel_axis = 0 if layout == "NCHW" else 2
    height, width = (edge for axis, edge in enumerate(image.shape) if axis != channel_axis)
    left, top, right, bottom = box
    rows, columns = _edges(top, bottom, height, grid), _edges(left, right, width, grid)
    filled = _filled(image, fill, channel_axis, ((bottom - top) * height, (right - left) * width), grid)
    hidden: list[tuple[slice, ...]] = []
    for row, column in product(range(grid), range(grid)):
        patch = [slice(rows[row], rows[row + 1]), slice(columns[column], columns[column + 1])]
        patch.insert(channel_axis, slice(None))
        hidden.append(tuple(patch))
    scores = [_log_odds(logits_of(image[np.newaxis]), class_index)]
    at_once = max(1, min(len(hidden), _MOST_VALUES // image.size))
    for begin in range(0, len(hidden), at_once):
        part = hidden[begin : begin + at_once]
        variants = np.repeat(image[np.newaxis], len(part), axis=0)
        for variant, patch in zip(variants, part, strict=True):
            variant[patch] = filled[patch]
        scores.append(_log_odds(logits_of(variants), class_index))
    falls: Floats = scores[0] - np.concatenate(scores[1:])
    return falls.reshape(grid, grid)


def relative_map(falls: Floats, *, least: float = LEAST_FALL) -> Floats:
    """Falls as shares of the largest one, in [0, 1], so that maps of models with other scales can be compared.

    Args:
        falls: of `occlusion_map`; negative ones become 0.
        least: falls are relative to this, if none is larger: the noise of a model that no patch changes stays small.

    Examples:
        >>> relative_map(np.array([[4.0, 1.0], [-2.0, 0.0]])).tolist()
        [[1.0, 0.25], [0.0, 0.0]]
    """
    positive = np.maximum(falls, 0.0)
    return positive / max(float(positive.max(initial=0)), least)


def _edges(begin: float, end: float, pixels: int, grid: int) -> list[int]:
    """The pixels at which patches begin, and where the last one ends."""
    found = np.rint(np.linspace(begin * pixels, end * pixels, grid + 1)).astype(int).tolist()
    if min(np.diff(found)) < 1:
        raise InvalidInputError(
            f"{grid} patches do not fit into {found[-1] - found[0]} pixels.",
            field="grid",
            hint="Choose a smaller grid.",
        )
    return found


def _filled(
    image: NDArray[np.float32], fill: Fill, channel_axis: int, covered: tuple[float, float], grid: int
) -> NDArray[np.float32]:
    """What hidden patches show, of the shape of the image."""
    if fill == "mean":
        axes = tuple(axis for axis in range(3) if axis != channel_axis)
        return np.broadcast_to(image.mean(axis=axes, keepdims=True), image.shape)
    widths = [edge / grid for edge in covered]
    widths.insert(channel_axis, 0.0)
    return gaussian_blur(image, widths)


def _log_odds(logits: NDArray[np.floating], class_index: int) -> Floats:
    """Log-odds of the class against all others, shape (n,)."""
    rows = logits.astype(np.float64)
    if rows.ndim != 2 or not 0 <= class_index < rows.shape[1] or rows.shape[1] < 2:
        raise InvalidInputError(
            f"there is no class {class_index} in logits of shape {rows.shape}.", field="class_index"
        )
    if not np.isfinite(rows).all():
        raise InvalidInputError("expected finite logits of images with a hidden patch.", field="model")
    others = np.delete(rows, class_index, axis=1)
    largest = others.max(axis=1)
    rest = largest + np.log(np.exp(others - largest[:, np.newaxis]).sum(axis=1))
    return rows[:, class_index] - rest
