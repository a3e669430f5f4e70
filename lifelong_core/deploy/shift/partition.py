"""First partition of a window: efficient scores of the mixture of classes, and segments in which their mean differs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from lifelong_core.deploy.numerics.simplex import mixture_weights, smooth, tangent_basis
from lifelong_core.deploy.shift.ordered_window import LEAST_GROUPS, OrderedWindow
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.scientific import cholesky, log_gamma, lower_solve

MOST_BLOCKS = 200
RARE_SAMPLES = 5.0
"""Classes with fewer samples in the window have little weight, because their scores are not normal."""

SHORTEST_SEGMENT = 60.0
"""Effective samples; with fewer, a mean of posteriors is not approximately normal."""


@dataclass(frozen=True)
class EfficientScores:
    """Efficient scores of the mixture weights at the prevalence of the whole window."""

    window: OrderedWindow
    scores: Floats
    """shape (U, C - 1), posteriors under that prevalence, in tangent coordinates"""
    sums: Floats
    """shape (P, C - 1), sums over the samples of each piece"""
    bounds: Integers
    """shape (B + 1,), pieces where blocks begin and end"""

    @classmethod
    def of(cls, window: OrderedWindow) -> Self:
        """Compute the scores of a window."""
        uniform: Floats = np.full(window.classes, 1 / window.classes)
        prevalence = smooth(
            mixture_weights(window.densities, window.counts, uniform), float(window.counts.sum())
        )
        posteriors = window.densities * prevalence
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        scores = posteriors @ tangent_basis(window.classes)
        scores -= window.counts @ scores / window.counts.sum()
        return cls(window, scores, window.piece_sums(scores), block_bounds(window.ends, MOST_BLOCKS))

    def partition(self, level: float, segments: Sequence[int]) -> tuple[tuple[int, ...], float]:
        """First pieces of the segments, and the design effect of groups around the previous segments."""
        sums, sizes = self.whiten()
        effect = self._design_effect(segments)
        found = best_partition(
            sums,
            sizes,
            penalty=self.threshold(level, effect) * effect,
            shortest=min(SHORTEST_SEGMENT * effect, float(sizes.sum())),
        )
        return (0, *(int(self.bounds[block]) for block in found)), effect

    def whiten(self) -> tuple[Floats, Floats]:
        """Sums of each block, (B, C - 1), in units of unit covariance for independent samples, and the samples of each
        block.
        """
        sums, sizes = self._block_sums()
        return lower_solve(self._factor, sums.T).T, sizes

    def _block_sums(self) -> tuple[Floats, Floats]:
        return (
            np.add.reduceat(self.sums, self.bounds[:-1], axis=0),
            np.add.reduceat(self.window.sizes, self.bounds[:-1]),
        )

    @cached_property
    def _factor(self) -> Floats:
        """Lower triangular factor of the covariance of the scores within blocks."""
        sums, sizes = self._block_sums()
        samples = float(sizes.sum())
        within = (self.scores * self.window.counts[:, np.newaxis]).T @ self.scores
        within -= (sums / sizes[:, np.newaxis]).T @ sums
        covariance = within / max(samples - sizes.size, 1.0)
        return cholesky(covariance + RARE_SAMPLES / samples * np.eye(covariance.shape[0]))

    def next_best(self, effect: float) -> tuple[int, float]:
        """First piece after the best single change, and twice the log likelihood that it gains."""
        sums, sizes = self.whiten()
        total, reach = np.cumsum(sums, axis=0)[:-1], np.cumsum(sizes)
        shorter = np.minimum(reach, reach[-1] - reach)[:-1]
        gains = (total**2).sum(axis=1) * reach[-1] / (reach * (reach[-1] - reach))[:-1] / effect
        gains[shorter < SHORTEST_SEGMENT * effect] = 0
        if gains.size == 0:
            return 0, 0.0
        return int(self.bounds[1 + int(gains.argmax())]), float(gains.max())

    def threshold(self, level: float, effect: float) -> float:
        """Threshold for twice the log likelihood gain of a change, in a window of independent samples."""
        share = min(SHORTEST_SEGMENT * effect / float(self.window.counts.sum()), 0.4)
        return change_threshold(self.window.classes - 1, level=level, shortest_share=share)

    def _design_effect(self, segments: Sequence[int]) -> float:
        """Variance of the sums of groups, relative to independent samples, at least 1."""
        if self.window.group_piece is None:
            return 1.0
        number = self.window.groups_in(0, self.window.pieces)
        if number < LEAST_GROUPS:
            # Their scatter cannot be distinguished from a change: each group counts as one sample.
            return max(1.0, float(self.window.sizes.sum()) / number)
        sizes = np.add.reduceat(self.window.sizes, segments)
        means = np.add.reduceat(self.sums, segments, axis=0) / sizes[:, np.newaxis]
        centres = np.repeat(means, np.diff([*segments, self.window.pieces]), axis=0)
        grouped = self.window.group_sums(self.scores, centres)
        entries = self.scores[self.window.group_point] - centres[self.window.group_piece]
        alone = (lower_solve(self._factor, entries.T) ** 2).sum(axis=0) @ self.window.group_counts
        together = (lower_solve(self._factor, grouped.T) ** 2).sum()
        return max(1.0, float(together / alone)) if alone > 0 else 1.0


def change_threshold(dimensions: float, *, level: float, shortest_share: float) -> float:
    """Threshold for twice the log likelihood gain of one change, exceeded by chance with probability `level`.

    It is a quantile of the largest |B(t)|^2 / (t (1 - t)) over shortest_share <= t <= 1 - shortest_share, B a Brownian
    bridge in that many dimensions (Csoergoe and Horvath 1997, theorem A.3.4; Estrella 2003).

    Args:
        dimensions: dimensions of the sequence, positive.
        level: probability, between 0 and 1.
        shortest_share: smallest share of the sequence on either side of a change, between 0 and 1/2.

    Examples:
        >>> round(change_threshold(1, level=0.05, shortest_share=0.15), 1)  # Andrews (1993): 8.85
        8.7
    """
    spread = 2 * math.log((1 - shortest_share) / shortest_share)
    constant = -dimensions / 2 * math.log(2) - float(log_gamma(dimensions / 2))

    def log_tail(value: float) -> float:
        rate = max(spread * (1 - dimensions / value), 0.0) + 2 / value
        return constant + dimensions / 2 * math.log(value) - value / 2 + math.log(rate)

    # Beyond its mode the tail falls.
    low, high = dimensions + 2.0, 4 * (dimensions + 30 - math.log(level))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_tail(middle) > math.log(level) else (low, middle)
    return high


def block_bounds(ends: Floats, most: int) -> Integers:
    """Bounds of at most `most` blocks of about equal size, in pieces, shape (B + 1,), from 0 to P.

    Args:
        ends: shape (P + 1,), samples up to the end of each piece, 0 first.
        most: largest number of blocks.
    """
    blocks = min(most, ends.size - 1)
    wanted: Floats = np.arange(blocks + 1) * (ends[-1] / blocks)
    return np.unique(np.searchsorted(ends, wanted * (1 - 1e-12))).astype(np.int64)


def best_partition(sums: Floats, weights: Floats, *, penalty: float, shortest: float) -> list[int]:
    """First blocks of the segments of the best partition, without the first one (Jackson et al. 2005).

    It maximises sum over segments of |S|^2 / w - penalty, S and w the segment's sums of `sums` and `weights`: twice the
    log likelihood of independent normal means, whitened, minus `penalty` for each change.

    Args:
        sums: shape (B, K), sums of whitened deviations in each block.
        weights: shape (B,), positive; samples of each block if there is no other variation.
        penalty: penalty for each change, positive.
        shortest: least weight of a segment.
    """
    blocks = weights.size
    total = np.vstack([np.zeros(sums.shape[1]), np.cumsum(sums, axis=0)])
    reach = np.concatenate([[0.0], np.cumsum(weights)])
    best = np.full(blocks + 1, -np.inf)
    best[0] = 0.0
    previous = np.zeros(blocks + 1, dtype=np.int64)
    for end in range(1, blocks + 1):
        starts = np.flatnonzero(reach[end] - reach[:end] >= shortest) if end < blocks else np.arange(end)
        starts = starts[(reach[end] - reach[starts] >= shortest) | (starts == 0)]
        if starts.size == 0:
            continue
        gains = ((total[end] - total[starts]) ** 2).sum(axis=1) / (reach[end] - reach[starts])
        values = best[starts] + gains - penalty * (starts > 0)
        winner = int(values.argmax())
        best[end], previous[end] = values[winner], starts[winner]
    changes = list[int]()
    end = int(previous[blocks])
    while end > 0:
        changes.append(end)
        end = int(previous[end])
    return changes[::-1]
