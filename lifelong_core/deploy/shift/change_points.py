"""When did the prevalence change? None, one or several change points in a window in order of time.

Two steps. First a partition of some hundred blocks of the window: the posterior of each sample under the prevalence of
the whole window is the efficient score of the mixture, so a change of the prevalence moves its mean, and the best
partition of whitened block means shows where (optimal partitioning; the threshold is the tail of a squared Brownian
bridge, so that chance makes a change of an unchanged window in less than 1 of 100). Then each change is refined to
single pieces by the likelihood ratio of the two mixtures before and after, which also gives the interval of its time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Self

import numpy as np

from lifelong_core.arrays import Floats, Integers
from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.scientific import cholesky, lower_solve, normal_quantile
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.deploy.shift.rhythm import Pattern, find_pattern, lasting_change
from lifelong_core.deploy.shift.segmentation import best_partition, block_bounds, change_threshold
from lifelong_core.deploy.simplex import mixture_weights, smoothed, tangent_basis

MOST_BLOCKS = 200
SHORTEST_SEGMENT = 60.0
"""Effective samples: with fewer, a mean of posteriors is not about normal."""
RARE_SAMPLES = 5.0
"""A class with fewer samples in the window hardly counts: their scatter is not normal either."""
CONFIDENCE = 0.95
LOCATION_DROP = 3.676
"""The log likelihood of the true time lies so far below its maximum with probability 1 - CONFIDENCE: on either side of
the change the log likelihood ratio is a random walk that falls, whose maximum exceeds x with probability exp(-x)
(Siegmund 1988), and 1 - (1 - exp(-x))^2 = 0.05."""
_END_OF_INTERVAL = 0.125
"""Weight of the squared difference that either end of the interval of a change's time makes: it is about two standard
errors away, and one of two ends."""
_REFINEMENTS = 2
_FIELDS = ("samples_ago", "low", "high", "size", "size_low", "size_high", "changed_at")


@dataclass(frozen=True)
class ChangePoint:
    """A change of the prevalence within a window."""

    samples_ago: int
    """samples of the window after the change, 1 or more"""
    low: int
    high: int
    """interval of `samples_ago`, at CONFIDENCE"""
    size: float
    """L1 distance, 0 to 2, of the prevalences before and after, each from and to the neighbouring changes"""
    size_low: float
    size_high: float
    """interval of `size`, at CONFIDENCE"""
    changed_at: datetime | None = None
    """UTC: time of the first sample, or begin of the first bucket, after the change; None: the times are unknown"""

    def to_document(self) -> dict[str, Any]:
        """All fields as JSON values; every number survives the round trip exactly."""
        values = {name: getattr(self, name) for name in _FIELDS}
        at = None if self.changed_at is None else self.changed_at.isoformat()
        return {"schema_version": 1, **values, "changed_at": at}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing or unknown.
        """
        found = take_fields(document, 1, required=_FIELDS)
        if found["changed_at"] is not None:
            found["changed_at"] = datetime.fromisoformat(found["changed_at"])
        return cls(**found)


@dataclass(frozen=True)
class Segmentation:
    """A window cut at its change points."""

    changes: tuple[ChangePoint, ...]
    """in order of time"""
    begins: tuple[int, ...]
    """first piece of each segment, ascending, 0 first"""
    alternatives: tuple[tuple[int, float], ...]
    """other first pieces that the last segment may have, and how much of the squared difference between the estimates
    from there on and from the chosen piece on belongs to the variance of the latter"""
    pattern: Pattern | None = None
    """what changes that are none to follow look like; then there is one segment"""
    scatter: Floats | None = None
    """shape (C, C), covariance of the mean prevalence of the window because of the pattern"""


def find_change_points(window: OrderedWindow, *, level: float, times: Floats | None = None) -> Segmentation:
    """The change points of a window.

    Args:
        window: pieces in order of time.
        times: shape (P,), ascending, seconds since 1970 (UTC) of the begin of each piece, to tell a rhythm.
        level: largest probability of a change point where there is no change, positive.
    """
    scores = _Scores.of(window)
    begins, effect = scores.partition(level, (0,))
    if window.group_piece is not None and len(begins) > 1:
        # Groups scatter less around their own segment than around a window that a change has widened.
        begins, effect = scores.partition(level, begins)
    threshold = scores.threshold(level, effect)
    pattern, lasting = scores.pattern(begins, effect, times, threshold, level)
    if pattern is not None and lasting is None:
        return Segmentation((), (0,), (), pattern, _scatter(window, begins))
    if lasting is not None:
        begins = (0, lasting)
    splits = _refine(window, begins, threshold * effect, LOCATION_DROP * effect, SHORTEST_SEGMENT * effect)
    changes = tuple(_change_point(window, split, effect) for split in splits)
    begins = (0, *(split.at for split in splits))
    if not splits:
        at, gain = scores.next_best(effect)
        return Segmentation(changes, begins, ((at, _probability(gain, threshold)),))
    last = splits[-1]
    none = (last.begin, 1 - _probability(2 * last.gain / effect, threshold))
    ends = tuple((piece, _END_OF_INTERVAL) for piece in (last.low, last.high) if piece != last.at)
    return Segmentation(changes, begins, (*ends, none))


def _scatter(window: OrderedWindow, begins: Sequence[int]) -> Floats:
    """Covariance of the window's prevalence, (C, C), where the prevalence of each segment is a draw of its own."""
    ends = (*begins[1:], window.pieces)
    found = np.array(
        [_Mixture.of(window, begin, end).prevalence for begin, end in zip(begins, ends, strict=True)]
    )
    shares = np.diff(window.ends[[*begins, window.pieces]]) / window.ends[-1]
    moves = (found - shares @ found) * shares[:, np.newaxis]
    return moves.T @ moves


def _probability(gain: float, threshold: float) -> float:
    """Of a change that gains so much, where one that gains as much as the threshold is as likely as none."""
    return 1 / (1 + math.exp(min((threshold - gain) / 2, 700.0)))


@dataclass(frozen=True)
class _Scores:
    """Efficient scores of the mixture weights at the prevalence of the whole window."""

    window: OrderedWindow
    scores: Floats
    """shape (U, C - 1), posteriors under that prevalence, in coordinates of the tangent space"""
    sums: Floats
    """shape (P, C - 1)"""
    bounds: Integers
    """shape (B + 1,), pieces where blocks begin and end"""

    @classmethod
    def of(cls, window: OrderedWindow) -> Self:
        uniform: Floats = np.full(window.classes, 1 / window.classes)
        prevalence = smoothed(
            mixture_weights(window.densities, window.counts, uniform), float(window.counts.sum())
        )
        posteriors = window.densities * prevalence
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        scores = posteriors @ tangent_basis(window.classes)
        scores -= window.counts @ scores / window.counts.sum()
        return cls(window, scores, window.piece_sums(scores), block_bounds(window.ends, MOST_BLOCKS))

    def partition(self, level: float, segments: Sequence[int]) -> tuple[tuple[int, ...], float]:
        """First pieces of the segments, and the design effect of groups around the segments known so far."""
        sums, sizes = self.whitened()
        effect = self._design_effect(segments)
        found = best_partition(
            sums,
            sizes,
            penalty=self.threshold(level, effect) * effect,
            shortest=min(SHORTEST_SEGMENT * effect, float(sizes.sum())),
        )
        return (0, *(int(self.bounds[block]) for block in found)), effect

    def whitened(self) -> tuple[Floats, Floats]:
        """Sums of each block, (B, C - 1), in units in which independent samples have unit covariance, and samples."""
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
        sums, sizes = self.whitened()
        total, reach = np.cumsum(sums, axis=0)[:-1], np.cumsum(sizes)
        shorter = np.minimum(reach, reach[-1] - reach)[:-1]
        gains = (total**2).sum(axis=1) * reach[-1] / (reach * (reach[-1] - reach))[:-1] / effect
        gains[shorter < SHORTEST_SEGMENT * effect] = 0
        if gains.size == 0:
            return 0, 0.0
        return int(self.bounds[1 + int(gains.argmax())]), float(gains.max())

    def pattern(
        self, begins: Sequence[int], effect: float, times: Floats | None, price: float, level: float
    ) -> tuple[Pattern | None, int | None]:
        """What the changes follow, if they are none to follow, and the first piece after one that stays even so."""
        sums, sizes = self.whitened()
        sums, sizes = sums / effect, sizes / effect
        blocks: list[int] = np.searchsorted(self.bounds, begins).tolist()
        moments = None if times is None else times[self.bounds[:-1]]
        found = find_pattern(sums, sizes, moments, blocks, price)
        segment = lasting_change(sums, sizes, blocks, level) if found == "jitter" else None
        return found, None if segment is None else begins[segment]

    def threshold(self, level: float, effect: float) -> float:
        """Twice the log likelihood that a change must gain, in a window of independent samples."""
        share = min(SHORTEST_SEGMENT * effect / float(self.window.counts.sum()), 0.4)
        return change_threshold(self.window.classes - 1, level=level, shortest_share=share)

    def _design_effect(self, segments: Sequence[int]) -> float:
        """How much more the sums of groups scatter than those of as many independent samples, at least 1."""
        if self.window.group_piece is None:
            return 1.0
        sizes = np.add.reduceat(self.window.sizes, segments)
        means = np.add.reduceat(self.sums, segments, axis=0) / sizes[:, np.newaxis]
        centres = np.repeat(means, np.diff([*segments, self.window.pieces]), axis=0)
        grouped = self.window.group_sums(self.scores, centres)
        entries = self.scores[self.window.group_point] - centres[self.window.group_piece]
        alone = (lower_solve(self._factor, entries.T) ** 2).sum(axis=0) @ self.window.group_counts
        together = (lower_solve(self._factor, grouped.T) ** 2).sum()
        return max(1.0, float(together / alone)) if alone > 0 else 1.0


@dataclass(frozen=True)
class _Split:
    """A change between two segments."""

    begin: int
    """first piece of the segment before"""
    low: int
    at: int
    """first piece of the segment after"""
    high: int
    end: int
    """piece after the segment after"""
    gain: float
    """log likelihood that the change gains"""


def _refine(
    window: OrderedWindow, begins: Sequence[int], least_gain: float, drop: float, shortest: float
) -> list[_Split]:
    """Each change at the piece where the likelihood of both mixtures is largest; without those that gain too little."""
    starts = list(begins)
    position = 1
    splits = dict[int, _Split]()
    while position < len(starts):
        end = starts[position + 1] if position + 1 < len(starts) else window.pieces
        split = _best_split(window, starts[position - 1], starts[position], end, drop, shortest)
        if 2 * split.gain < least_gain:
            del starts[position]
            position = max(1, position - 1)
            continue
        starts[position] = split.at
        splits[split.at] = split
        position += 1
    return [splits[at] for at in starts[1:]]


def _best_split(window: OrderedWindow, begin: int, at: int, end: int, drop: float, shortest: float) -> _Split:
    """The best place of one change among pieces begin..end-1."""
    whole = _Mixture.of(window, begin, end)
    reach = window.ends[begin : end + 1]
    allowed = (reach - reach[0] >= min(shortest, (reach[-1] - reach[0]) / 2)) & (
        reach[-1] - reach >= min(shortest, (reach[-1] - reach[0]) / 2)
    )
    curve: Floats = np.zeros(reach.size)
    for _ in range(_REFINEMENTS):
        before, after = _Mixture.of(window, begin, at), _Mixture.of(window, at, end)
        ratio = np.log(window.densities @ before.prevalence) - np.log(window.densities @ after.prevalence)
        curve = np.concatenate([[0.0], np.cumsum(window.piece_sums(ratio)[begin:end])])
        curve[~allowed] = -np.inf
        if not allowed.any():
            break
        at = begin + int(curve.argmax())
    before, after = _Mixture.of(window, begin, at), _Mixture.of(window, at, end)
    gain = before.likelihood + after.likelihood - whole.likelihood
    near = np.flatnonzero(curve >= curve[at - begin] - drop)
    return _Split(begin, begin + int(near[0]), at, begin + int(near[-1]), end, gain)


@dataclass(frozen=True)
class _Mixture:
    """The most likely prevalence of some pieces."""

    prevalence: Floats
    likelihood: float
    densities: Floats
    counts: Floats

    @classmethod
    def of(cls, window: OrderedWindow, begin: int, end: int) -> Self:
        densities, counts = window.part(begin, end)
        uniform: Floats = np.full(window.classes, 1 / window.classes)
        weights = mixture_weights(densities, counts, uniform)
        # A prevalence of exactly 0 would make one sample decide where the change is.
        prevalence = smoothed(weights, float(counts.sum()))
        likelihood = float(counts @ np.log(densities @ weights))
        return cls(prevalence, likelihood, densities, counts)

    def variance(self, direction: Floats) -> float:
        """Of direction . prevalence, from the information of independent samples."""
        basis = tangent_basis(self.prevalence.size)
        scores = self.densities / (self.densities @ self.prevalence)[:, np.newaxis] @ basis
        information = (scores * self.counts[:, np.newaxis]).T @ scores
        reduced = basis.T @ direction
        return float(reduced @ np.linalg.pinv(information, hermitian=True) @ reduced)


def _change_point(window: OrderedWindow, split: _Split, effect: float) -> ChangePoint:
    before, after = _Mixture.of(window, split.begin, split.at), _Mixture.of(window, split.at, split.end)
    difference = after.prevalence - before.prevalence
    direction = np.sign(difference)
    size = float(np.abs(difference).sum())
    error = np.sqrt(effect * (before.variance(direction) + after.variance(direction)))
    reach = normal_quantile((1 - CONFIDENCE) / 2) * float(error)
    ago = window.ends[-1] - window.ends
    return ChangePoint(
        samples_ago=round(float(ago[split.at])),
        low=round(float(ago[split.high])),
        high=round(float(ago[split.low])),
        size=size,
        size_low=max(0.0, size - reach),
        size_high=min(2.0, size + reach),
    )
