"""Which samples of a summarised window belong together: all groups while they are few, a random sample of many."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.arrays import Integers, frozen
from lifelong_core.deploy.quantification.uncertainty import Clusters
from lifelong_core.deploy.values import ArrayValue
from lifelong_core.errors import InvalidInputError

Hashes = NDArray[np.uint64]

MOST_GROUPS = 4096
"""Groups that are kept. With more, the design effect is estimated from so many of them: that estimate is off by some
sqrt(2 / 4096) = 2 % (one standard error, for groups whose sums are about normal), an interval's width by 1 %."""

MOST_ENTRIES = 1 << 17
"""Pairs of group and cell that are kept, so that a few very large groups cannot make a summary large."""

ALL = np.uint64(2**64 - 1)
"""Limit of a sketch that has lost nothing; no hash is as large."""


ARRAYS = ("hashes", "group", "cell", "counts", "limit")


@dataclass(frozen=True, eq=False)
class GroupSketch(ArrayValue):
    """Samples per cell of the groups with the smallest hashes of their keys (Cohen and Kaplan 2007: bottom-k).

    The hash decides which groups are kept, in every bucket alike: so parts of a group in two buckets are joined, and
    merging in any order and grouping gives the same sketch.
    """

    hashes: Hashes
    """shape (G,), ascending"""
    group: Integers
    """shape (E,), index into `hashes`, ascending"""
    cell: Integers
    """shape (E,), ascending within a group"""
    counts: Integers
    """shape (E,), samples"""
    limit: np.uint64 = ALL
    """every group with a smaller hash is here, none with another"""

    def __post_init__(self) -> None:
        """Check that the arrays fit each other, and freeze them.

        Raises:
            InvalidInputError: they do not.
        """
        same = self.group.shape == self.cell.shape == self.counts.shape
        named = np.array_equal(np.unique(self.group), np.arange(self.hashes.size))
        if not (same and named and (self.counts >= 1).all() and (self.hashes[1:] > self.hashes[:-1]).all()):
            raise InvalidInputError("the arrays of groups do not fit each other.", field="groups")
        for array in (self.hashes, self.group, self.cell, self.counts):
            frozen(array)

    @classmethod
    def of(cls, keys: NDArray[np.generic], cells: Integers) -> Self:
        """Sketch of samples with these keys, (N,), in these cells, (N,)."""
        distinct, member = np.unique(keys, return_inverse=True)
        hashes = np.array([_hash(key) for key in distinct.tolist()], dtype=np.uint64)
        return cls._kept(hashes[member], cells, np.ones(cells.size, dtype=np.int64), ALL)

    def __add__(self, other: Self) -> Self:
        """The sketch of both together."""
        return self._kept(
            np.concatenate([self.hashes[self.group], other.hashes[other.group]]),
            np.concatenate([self.cell, other.cell]),
            np.concatenate([self.counts, other.counts]),
            min(self.limit, other.limit),
        )

    @property
    def complete(self) -> bool:
        """Are all groups here?"""
        return self.limit == ALL

    def clusters(self, cells: Integers) -> Clusters:
        """The groups as clusters of the rows of a summary, whose cells, ascending, are given."""
        return Clusters(
            np.searchsorted(cells, self.cell).astype(np.int64), self.group, self.counts.astype(np.float64)
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All fields by name."""
        return {name: np.asarray(getattr(self, name)) for name in ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Undo `arrays`.

        Raises:
            InvalidInputError: one is missing, or they do not fit each other.
        """
        for name in ARRAYS:
            if name not in arrays:
                raise InvalidInputError(f"the array {name} is missing.", field="groups")
        group, cell, counts = (arrays[name].astype(np.int64) for name in ("group", "cell", "counts"))
        return cls(arrays["hashes"].astype(np.uint64), group, cell, counts, np.uint64(arrays["limit"]))

    @classmethod
    def _kept(cls, hashes: Hashes, cells: Integers, counts: Integers, limit: np.uint64) -> Self:
        """Join equal pairs of group and cell, and keep the first groups that are known completely and fit."""
        known = hashes < limit
        order = np.lexsort([cells[known], hashes[known]])
        hashes, cells, counts = hashes[known][order], cells[known][order], counts[known][order]
        fresh = np.ones(hashes.size, dtype=np.bool_)
        fresh[1:] = (np.diff(hashes) > 0) | (np.diff(cells) != 0)
        first = np.flatnonzero(fresh)
        totals = np.add.reduceat(counts, first) if first.size else counts
        distinct, group = np.unique(hashes[first], return_inverse=True)
        ends = np.cumsum(np.bincount(group, minlength=distinct.size))
        kept = min(MOST_GROUPS, int(np.searchsorted(ends, MOST_ENTRIES, side="right")))
        if kept < distinct.size:
            limit = distinct[kept]
        entries = group < kept
        return cls(
            distinct[:kept],
            group[entries].astype(np.int64),
            cells[first][entries],
            totals[entries].astype(np.int64),
            np.uint64(limit),
        )


def _hash(key: object) -> int:
    """64 bits of a key; the number 7 and the text "7" differ."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return min(int.from_bytes(digest, "little"), 2**64 - 2)
