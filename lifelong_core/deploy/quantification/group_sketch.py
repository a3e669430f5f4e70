"""Group sketch of a summarised window: all groups while they are few, a random sample of many."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.quantification.codebook import MOST_CELLS
from lifelong_core.deploy.quantification.uncertainty import Clusters
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Integers, read_only
from lifelong_core.values.errors import InvalidInputError

Hashes = NDArray[np.uint64]

MOST_GROUPS = 4096
"""Most groups in a sketch. With more, the design effect is estimated from this sample, with an error of about sqrt(2 /
4096) = 2 % (one standard error, for normal group sums), or 1 % of an interval's width."""

MOST_ENTRIES = 1 << 17
"""Most pairs of group and cell in a sketch, so that a few very large groups cannot make a summary large. About 32
groups always fit; the error of the design effect depends on the number of groups left."""

ALL = np.uint64(2**64 - 1)
"""Limit of a complete sketch; no hash is as large."""


ARRAYS = ("hashes", "group", "cell", "counts", "limit")


@dataclass(frozen=True, eq=False)
class GroupSketch(ArrayValue):
    """Samples per cell of the groups with the smallest hashes of their keys (Cohen and Kaplan 2007: bottom-k).

    The hash selects the same groups in every bucket. Parts of a group in two buckets are therefore joined, and merging
    in any order gives the same sketch.
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
    """every group with a smaller hash is in the sketch, and no other"""

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
            read_only(array)

    @classmethod
    def of(cls, keys: NDArray[np.generic], cells: Integers) -> Self:
        """Sketch of samples with these keys, (N,), in these cells, (N,)."""
        distinct, member = np.unique(keys, return_inverse=True)
        hashes, group = np.unique(
            np.array([_hash(key) for key in distinct.tolist()], dtype=np.uint64), return_inverse=True
        )
        entries = group[member] * MOST_CELLS + cells
        return cls._kept(hashes, entries.astype(np.int64), np.ones(cells.size, dtype=np.int64), ALL)

    @classmethod
    def merge(cls, sketches: Sequence[Self]) -> Self:
        """Merge sketches into one."""
        limit = min(sketch.limit for sketch in sketches)
        hashes = np.unique(np.concatenate([sketch.hashes for sketch in sketches]))
        hashes = hashes[hashes < limit]
        entries, counts = list[Integers](), list[Integers]()
        for sketch in sketches:
            known = sketch.group < np.searchsorted(sketch.hashes, limit)
            group = np.searchsorted(hashes, sketch.hashes)[sketch.group[known]]
            entries.append((group * MOST_CELLS + sketch.cell[known]).astype(np.int64))
            counts.append(sketch.counts[known])
        return cls._kept(hashes, np.concatenate(entries), np.concatenate(counts), limit)

    @property
    def complete(self) -> bool:
        """Whether the sketch has all groups."""
        return self.limit == ALL

    def clusters(self, cells: Integers) -> Clusters:
        """Groups as clusters of the rows of a summary with these cells, in ascending order."""
        return Clusters(
            np.searchsorted(cells, self.cell).astype(np.int64), self.group, self.counts.astype(np.float64)
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All fields by name."""
        return {name: np.asarray(getattr(self, name)) for name in ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Build a sketch from its `arrays`.

        Raises:
            InvalidInputError: one is missing, or they do not fit each other.
        """
        for name in ARRAYS:
            if name not in arrays:
                raise InvalidInputError(f"the array {name} is missing.", field="groups")
        group, cell, counts = (arrays[name].astype(np.int64) for name in ("group", "cell", "counts"))
        return cls(arrays["hashes"].astype(np.uint64), group, cell, counts, np.uint64(arrays["limit"]))

    @classmethod
    def _kept(cls, hashes: Hashes, entries: Integers, counts: Integers, limit: np.uint64) -> Self:
        """Join equal entries, group * MOST_CELLS + cell, and keep the first groups that fit."""
        # A stable sort merges runs that are sorted already, as those of sketches are.
        order = np.argsort(entries, kind="stable")
        entries, counts = entries[order], counts[order]
        first = np.flatnonzero(np.diff(entries, prepend=-1))
        entries, totals = entries[first], np.add.reduceat(counts, first) if first.size else counts
        group = entries // MOST_CELLS
        ends = np.cumsum(np.bincount(group, minlength=hashes.size))
        kept = min(MOST_GROUPS, int(np.searchsorted(ends, MOST_ENTRIES, side="right")))
        if kept < hashes.size:
            limit = hashes[kept]
        fitting = group < kept
        return cls(
            hashes[:kept], group[fitting], entries[fitting] % MOST_CELLS, totals[fitting], np.uint64(limit)
        )


def _hash(key: object) -> int:
    """64-bit hash of a key; the number 7 and the text "7" differ."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return min(int.from_bytes(digest, "little"), 2**64 - 2)
