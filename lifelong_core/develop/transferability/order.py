"""Comparisons of all entries of a row with each other; nan has no order."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.values.arrays import Floats, Integers, Mask


def as_floats(values: ArrayLike) -> Floats:
    """The values as float64."""
    return np.asarray(values, dtype=np.float64)


def places(values: Floats) -> tuple[Integers, Integers]:
    """For each entry, how many entries of its row are larger, and how many are equal (itself included); 0 for nan.

    Examples:
        >>> [one.tolist() for one in places(np.array([5.0, 7.0, np.nan, 5.0]))]
        [[1, 0, 0, 1], [2, 1, 0, 2]]
    """
    other, own = values[..., np.newaxis, :], values[..., :, np.newaxis]
    return count(other > own), count(other == own)


def count(mask: Mask) -> Integers:
    """Number of true entries along the last axis."""
    return np.asarray(np.sum(mask, axis=-1), dtype=np.int64)


def signs(values: Floats) -> NDArray[np.int8]:
    """Order of each pair, shape (..., n, n): 1 if the first is larger, -1 if smaller, 0 if equal or nan."""
    own, other = values[..., :, np.newaxis], values[..., np.newaxis, :]
    return (own > other).astype(np.int8) - (own < other).astype(np.int8)
