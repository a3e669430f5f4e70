"""Samples, the inputs of every metric of scores: checks, equal predictions, and large arrays in parts."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.values.arrays import Floats, Integers, as_labels, as_prevalence, as_probabilities
from lifelong_core.values.errors import InvalidInputError

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""odd, without a pattern in its bits (2**64 / golden ratio)"""


BLOCK = 1 << 20
"""Values in memory at a time: 8 MB."""

COLUMNS_TOGETHER = 8
"""Columns that are copied at a time: as many float64 as a cache line holds."""


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


def as_values(
    values: ArrayLike,
    *,
    field: str,
    samples: int | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    finite: bool = True,
) -> Floats:
    """Check numbers of shape (N,) between `low` and `high`; return float64, finite, or nan where allowed.

    Raises:
        InvalidInputError: not numeric, another shape, another number than `samples`, or a value outside.

    Examples:
        >>> as_values([0, 1], field="scores").tolist()
        [0.0, 1.0]
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected one number per sample.", field=field) from error
    if array.ndim != 1 or (samples is not None and array.size != samples):
        raise InvalidInputError(
            f"expected one number per sample, shape ({'N' if samples is None else samples},), got {array.shape}.",
            field=field,
        )
    outside = (array < low) | (array > high)
    if finite:
        outside |= ~np.isfinite(array)
    if outside.any():
        index = int(np.argmax(outside))
        raise InvalidInputError(
            f"expected numbers in [{low:g}, {high:g}], got {array[index]} at index {index}.", field=field
        )
    return array


def corrected_probabilities(probabilities: ArrayLike, *, given: ArrayLike, wanted: ArrayLike) -> Floats:
    """Probabilities p_k wanted_k / given_k, normalised (Saerens et al. 2002).

    Probabilities that are calibrated in a population with the class shares `given` are calibrated in one with the
    shares `wanted`, if the images of each class are the same.

    Args:
        probabilities: shape (N, C).
        given: shape (C,), class shares for which the probabilities hold.
        wanted: shape (C,), class shares of the other population.

    Returns:
        Shape (N, C). A row whose classes all have the wanted share 0 becomes `wanted`.

    Raises:
        InvalidInputError: a shape or a value does not fit, or a class is wanted that has the given share 0.

    Examples:
        >>> corrected_probabilities([[0.5, 0.5]], given=[0.5, 0.5], wanted=[0.98, 0.02]).tolist()
        [[0.98, 0.02]]
    """
    shares = as_prevalence(wanted, field="wanted")
    classes = shares.size
    present = as_prevalence(given, classes=classes, field="given")
    missing = np.flatnonzero((shares > 0) & (present == 0))
    if missing.size:
        raise InvalidInputError(
            f"the probabilities hold for a population without class {missing[0]}, which is wanted.",
            field="given",
            hint="State the class shares of the data on which the probabilities were calibrated.",
        )
    weights = np.where(shares > 0, shares, 0.0) / np.where(shares > 0, present, 1.0)
    weighted = as_probabilities(probabilities, classes=classes) * weights
    sums = weighted.sum(axis=1, keepdims=True)
    return np.where(sums > 0, weighted / np.where(sums > 0, sums, 1.0), shares)


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
    """Cases grouped by exactly equal predicted probabilities: all groups, or some of them."""

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
    groups = _Groups.of(probabilities)
    return groups.part(slice(0, groups.starts.size), labels, probabilities)


def equal_prediction_blocks(labels: Integers, probabilities: Floats) -> Iterator[EqualPredictions]:
    """`equal_predictions` in parts of some groups each, for many cases; at least one part."""
    groups = _Groups.of(probabilities)
    parts = list(blocks(groups.starts.size, probabilities.shape[1])) or [slice(0, 0)]
    return (groups.part(part, labels, probabilities) for part in parts)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Cases in the order of their groups."""

    order: Integers
    """shape (N,), cases group by group"""
    starts: Integers
    """shape (G,), place of the first case of each group in this order"""

    @classmethod
    def of(cls, probabilities: Floats) -> Self:
        """The groups of equal rows.

        Rows are compared by a hash of their bits, because sorting whole rows takes ten times as long. If two different
        rows have the same hash, the rows are sorted.
        """
        found = cls._of_keys(_hashes(probabilities))
        if found._is_equal_within(probabilities):
            return found
        _, keys = np.unique(probabilities, axis=0, return_inverse=True)
        return cls._of_keys(keys)

    @classmethod
    def _of_keys(cls, keys: NDArray[np.integer[Any]]) -> Self:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        is_first = np.ones(keys.size, dtype=np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        return cls(order, np.flatnonzero(is_first))

    def _is_equal_within(self, probabilities: Floats) -> bool:
        """Whether each case equals the first of its group."""
        sizes = np.diff(self.starts, append=self.order.size)
        firsts = np.repeat(self.order[self.starts], sizes)
        others = np.flatnonzero(firsts != self.order)
        return all(
            np.array_equal(probabilities[firsts[others[part]]], probabilities[self.order[others[part]]])
            for part in blocks(others.size, probabilities.shape[1])
        )

    def part(self, groups: slice, labels: Integers, probabilities: Floats) -> EqualPredictions:
        """Some groups; the weights are shares of all cases."""
        classes, starts = probabilities.shape[1], self.starts[groups]
        stop = self.starts[groups.stop] if groups.stop < self.starts.size else self.order.size
        sizes = np.diff(starts, append=stop)
        rows = self.order[starts[0] if starts.size else stop : stop]
        cells = labels[rows] + classes * np.repeat(np.arange(starts.size), sizes)
        members = np.bincount(cells, minlength=classes * starts.size).reshape(-1, classes)
        return EqualPredictions(
            sizes / max(self.order.size, 1), probabilities[self.order[starts]], members / sizes[:, np.newaxis]
        )


def _hashes(probabilities: Floats) -> NDArray[np.uint64]:
    hashes = np.zeros(len(probabilities), dtype=np.uint64)
    for column in columns_of(probabilities):
        hashes ^= (column + 0.0).view(np.uint64)  # the sum makes 0.0 of -0.0
        hashes *= MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    return hashes


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of the rows with at most `BLOCK` values each, at least one row.

    Examples:
        >>> [(part.start, part.stop) for part in blocks(3, BLOCK // 2)]
        [(0, 2), (2, 3)]
    """
    step = max(1, BLOCK // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def columns_of(values: Floats) -> Iterator[Floats]:
    """The columns of (N, C), each contiguous: a pass over a strided column reads nearly the whole array.

    Examples:
        >>> [column.tolist() for column in columns_of(np.array([[1.0, 2.0], [3.0, 4.0]]))]
        [[1.0, 3.0], [2.0, 4.0]]
    """
    for start in range(0, values.shape[1], COLUMNS_TOGETHER):
        yield from np.ascontiguousarray(values[:, start : start + COLUMNS_TOGETHER].T)
