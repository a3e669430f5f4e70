"""Labelled probabilities: the inputs of every metric of scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers, as_labels, as_probabilities
from lifelong_core.errors import InvalidInputError

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""odd, without a pattern in its bits (2**64 / golden ratio)"""


def as_labelled_probabilities(labels: ArrayLike, probabilities: ArrayLike) -> tuple[Integers, Floats]:
    """Check true classes of shape (N,) and class probabilities of shape (N, C) of the same cases.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> as_labelled_probabilities([1], [[0.25, 0.75]])
        (array([1]), array([[0.25, 0.75]]))
    """
    predicted = as_probabilities(probabilities)
    reference = as_labels(labels, classes=predicted.shape[1])
    if reference.size != predicted.shape[0]:
        raise InvalidInputError(
            f"expected as many rows as labels ({reference.size}), got {predicted.shape[0]}.",
            field="probabilities",
        )
    return reference, predicted


def as_class(positive: int, *, classes: int, field: str = "positive") -> int:
    """The index of one class, 0..classes-1.

    Raises:
        InvalidInputError: there is no such class.
    """
    if not 0 <= positive < classes or int(positive) != positive:
        raise InvalidInputError(
            f"expected a class index in 0..{classes - 1}, got {positive}.",
            field=field,
            hint="Classes are counted from 0.",
        )
    return int(positive)


@dataclass(frozen=True, eq=False)
class EqualPredictions:
    """Cases grouped by exactly equal predicted probabilities."""

    weights: Floats
    """shape (G,), share of the cases in each group"""
    probabilities: Floats
    """shape (G, C), the common prediction of each group"""
    class_shares: Floats
    """shape (G, C), shares of the true classes in each group"""


def equal_predictions(labels: Integers, probabilities: Floats) -> EqualPredictions:
    """Group cases by exactly equal rows of probabilities, in no particular order.

    Examples:
        >>> equal_predictions(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]])).class_shares.tolist()
        [[0.5, 0.5]]
    """
    classes = probabilities.shape[1]
    first, groups = _groups(probabilities)
    members = np.bincount(labels + classes * groups, minlength=classes * first.size).reshape(-1, classes)
    sizes = members.sum(axis=1)
    return EqualPredictions(sizes / max(labels.size, 1), probabilities[first], members / sizes[:, np.newaxis])


def _groups(probabilities: Floats) -> tuple[Integers, Integers]:
    """First row of each group, shape (G,), and the group of each row, shape (N,).

    Rows are compared by a hash of their bits, because sorting whole rows takes ten times as long. If two different rows
    have the same hash, the rows are sorted.
    """
    hashes = np.zeros(len(probabilities), dtype=np.uint64)
    for column in probabilities.T:
        bits = (column + 0.0).view(np.uint64)  # the sum makes 0.0 of -0.0
        hashes = (hashes ^ bits) * MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    _, first, groups = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(probabilities[first][groups], probabilities):
        _, first, groups = np.unique(probabilities, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), groups.astype(np.int64)
