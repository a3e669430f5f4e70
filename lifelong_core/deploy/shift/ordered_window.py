"""A window as pieces in order of time, for the search for change points.

A piece is indivisible: a row, successive rows of one group, or a bucket given by its summary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.group_sketch import Hashes
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.values.arrays import Floats, Integers, as_groups, as_logits
from lifelong_core.values.scientific import SparseMatrix, sparse_rows

LEAST_GROUPS = 10.0
"""Fewest groups of equal size in a segment."""


@dataclass(frozen=True, eq=False)
class OrderedWindow:
    """Class densities of the window's distinct points, and the number of samples of each piece at each point."""

    densities: Floats
    """shape (U, C), densities of the classes at each point, up to a factor per point"""
    counts: Floats
    """shape (U,), samples at each point"""
    sizes: Floats
    """shape (P,), samples of each piece"""
    content: SparseMatrix | None
    """shape (P, U), samples of each piece at each point; None: points are rows, in the order of the pieces"""
    group_piece: Integers | None
    """shape (E,), ascending pieces of the entries, which map samples to groups; None: no groups"""
    group_point: Integers
    """shape (E,), points of the entries"""
    group_member: Integers
    """shape (E,), groups of the entries, 0..G-1"""
    group_counts: Floats
    """shape (E,), samples of the entries"""

    @classmethod
    def of_rows(cls, fitted: FittedQuantifier, logits: ArrayLike, groups: ArrayLike | None) -> Self:
        """Build pieces from rows, or from runs of successive rows of one group.

        Raises:
            InvalidInputError: no row, a shape or a value does not fit.
        """
        rows = as_logits(logits, classes=fitted.calibration.classes)
        densities = fitted.densities(rows)
        ones: Floats = np.ones(len(rows))
        keys = as_groups(groups, samples=len(rows))
        nothing: Integers = np.zeros(0, dtype=np.int64)
        if keys is None:
            return cls(densities, ones, ones, None, None, nothing, nothing, nothing.astype(np.float64))
        member = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        starts = np.flatnonzero(np.diff(member, prepend=-1) != 0)
        sizes = np.diff(np.append(starts, len(rows))).astype(np.float64)
        piece = np.repeat(np.arange(sizes.size), sizes.astype(np.int64))
        point: Integers = np.arange(len(rows), dtype=np.int64)
        return cls(densities, ones, sizes, None, piece.astype(np.int64), point, member, ones)

    @classmethod
    def of_summaries(cls, fitted: FittedQuantifier, summaries: Sequence[WindowSummary]) -> Self:
        """Build pieces from the summaries that have samples; `whole_pieces` maps them to all summaries.

        Raises:
            InvalidInputError: one is of another quantifier, or only some have groups.
        """
        parts = [summary for summary in summaries if summary.samples]
        whole = WindowSummary.merge(parts)
        places = [np.searchsorted(whole.cells, part.cells).astype(np.int64) for part in parts]
        content = sparse_rows([part.counts for part in parts], places, width=whole.cells.size)
        sizes = np.array([float(part.samples) for part in parts])
        counts = whole.counts.astype(np.float64)
        return cls(fitted.densities(whole), counts, sizes, content, *_group_entries(parts, places))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.densities.shape[1]

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return self.sizes.size

    @cached_property
    def ends(self) -> Floats:
        """Samples up to the end of each piece, with 0 before the first; shape (P + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.sizes)])

    def piece_sums(self, values: Floats) -> Floats:
        """Sum over the samples of each piece, shape (P, ...), of values at the points, (U, ...)."""
        return self.part_sums(values, 0, self.pieces)

    def points_of(self, begin: int, end: int) -> slice:
        """Points of all samples of pieces begin..end-1."""
        if self.content is not None:
            return slice(None)
        return slice(*self.ends[[begin, end]].astype(np.int64).tolist())

    def part_sums(self, values: Floats, begin: int, end: int) -> Floats:
        """Sum over the samples of each of pieces begin..end-1, of values at their `points_of`."""
        if self.content is not None:
            return np.asarray(self.content[begin:end] @ values, dtype=np.float64)
        if end - begin == len(values):
            return values
        starts = (self.ends[begin:end] - self.ends[begin]).astype(np.int64)
        return np.add.reduceat(values, starts, axis=0)

    def part(self, begin: int, end: int) -> tuple[Floats, Floats]:
        """Densities of the points of pieces begin..end-1, (V, C), and their counts there, (V,)."""
        if self.content is None:
            rows = self.points_of(begin, end)
            return self.densities[rows], self.counts[rows]
        counts = np.asarray(self.content[begin:end].sum(axis=0), dtype=np.float64).ravel()
        present = counts > 0
        return self.densities[present], counts[present]

    def groups_in(self, begin: int, end: int) -> float:
        """Equivalent number of groups of equal size in pieces begin..end-1 (Kish 1965); infinite without groups."""
        if self.group_piece is None:
            return math.inf
        entries = slice(*np.searchsorted(self.group_piece, [begin, end]).tolist())
        sizes = np.bincount(self.group_member[entries], self.group_counts[entries])
        squares = float((sizes**2).sum())
        return float(sizes.sum()) ** 2 / squares if squares > 0 else 0.0

    def group_sums(self, values: Floats, centres: Floats) -> Floats:
        """Sum over each group's samples of the values at their points minus the centre of their piece.

        Args:
            values: shape (U, K).
            centres: shape (P, K).

        Returns:
            shape (G, K); an array without rows if there are no groups.
        """
        if self.group_piece is None:
            return np.zeros((0, values.shape[1]))
        residuals = values[self.group_point] - centres[self.group_piece]
        return member_sums(residuals * self.group_counts[:, np.newaxis], self.group_member)


def _group_entries(
    parts: Sequence[WindowSummary], places: Sequence[Integers]
) -> tuple[Integers | None, Integers, Integers, Floats]:
    """Piece, point, group and samples of each entry of the groups that are in all summaries."""
    nothing: Integers = np.zeros(0, dtype=np.int64)
    sketches = [part.groups for part in parts]
    if any(sketch is None for sketch in sketches):
        return None, nothing, nothing, nothing.astype(np.float64)
    known = [sketch for sketch in sketches if sketch is not None]
    limit = min(sketch.limit for sketch in known)
    pieces, points, counts = list[Integers](), list[Integers](), list[Integers]()
    hashes = list[Hashes]()
    for piece, (part, place, sketch) in enumerate(zip(parts, places, known, strict=True)):
        kept = sketch.hashes[sketch.group] < limit
        pieces.append(np.full(int(kept.sum()), piece, dtype=np.int64))
        points.append(place[np.searchsorted(part.cells, sketch.cell[kept])])
        hashes.append(sketch.hashes[sketch.group[kept]])
        counts.append(sketch.counts[kept])
    member = np.unique(np.concatenate(hashes), return_inverse=True)[1].astype(np.int64)
    return (
        np.concatenate(pieces).astype(np.int64),
        np.concatenate(points).astype(np.int64),
        member,
        np.concatenate(counts).astype(np.float64),
    )
