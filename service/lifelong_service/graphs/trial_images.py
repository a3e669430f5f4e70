"""Shapes and images of the trial runs of a graph."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.preprocessing import Preprocessing

_BLOCKS = 8
"""Blocks of one colour along an edge of an image of random colours."""


_UNKNOWN_EDGE = 64
"""Edge of the trial image in pixels when neither the preprocessing nor the graph fixes it."""


def image_shape(shape: Sequence[object], preprocessing: Preprocessing) -> tuple[int, int, int] | None:
    """Return the shape of one image in the input of a graph; None: images have no fixed size.

    Args:
        shape: of the input, with its batch axis.
        preprocessing: of the images.
    """
    first = 2 if preprocessing.layout == "NCHW" else 1
    height, width = shape[first : first + 2]
    if preprocessing.centre_crop is not None:
        height, width = preprocessing.centre_crop.height, preprocessing.centre_crop.width
    elif preprocessing.resize is not None and preprocessing.resize.mode == "exact":
        height, width = preprocessing.resize.height, preprocessing.resize.width
    if not isinstance(height, int) or not isinstance(width, int):
        return None
    if preprocessing.layout == "NHWC":
        return height, width, preprocessing.channels
    return preprocessing.channels, height, width


def trial_images(shape: Sequence[object], preprocessing: Preprocessing) -> list[NDArray[np.float32]]:
    """Return a grey image, a gradient and one of random colours.

    Their size is that of the preprocessing, else of the graph, else a small one.
    """
    known = [edge if isinstance(edge, int) else _UNKNOWN_EDGE for edge in shape]
    size = image_shape(known, preprocessing) or ()
    grey = np.full(size, 0.5, dtype=np.float32)
    gradient = np.linspace(0, 1, grey.size, endpoint=False, dtype=np.float32).reshape(size)
    return [grey, gradient, *random_colours(size, preprocessing, 1)]


def random_colours(
    shape: tuple[int, ...], preprocessing: Preprocessing, number: int
) -> list[NDArray[np.float32]]:
    """Return images of coloured blocks, always the same ones, normalised as the preprocessing does.

    Args:
        shape: of an image in the input of the graph.
        preprocessing: of the images.
        number: of the images.
    """
    rng = np.random.default_rng(0)
    height, width = shape[:2] if preprocessing.layout == "NHWC" else shape[1:]
    rows, columns = (np.arange(edge) * _BLOCKS // edge for edge in (height, width))
    images: list[NDArray[np.float32]] = []
    for _ in range(number):
        colours = rng.random((_BLOCKS, _BLOCKS, preprocessing.channels))
        pixels = (colours[rows][:, columns] - preprocessing.mean) / preprocessing.standard_deviation
        pixels = pixels if preprocessing.layout == "NHWC" else pixels.transpose(2, 0, 1)
        images.append(np.ascontiguousarray(pixels, dtype=np.float32))
    return images


def batch_sizes(maximum: int) -> tuple[int, ...]:
    """Return the powers of two below a maximum, and the maximum.

    Examples:
        >>> batch_sizes(64)
        (1, 2, 4, 8, 16, 32, 64)
        >>> batch_sizes(20)
        (1, 2, 4, 8, 16, 20)
    """
    powers = [1 << power for power in range(maximum.bit_length())]
    return (*(size for size in powers if size < maximum), maximum)
