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
from itertools import pairwise
from typing import Any, Self

import numpy as np

from lifelong_core.arrays import LARGEST_NUMBER, Floats, Integers
from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.scientific import cholesky, lower_solve, normal_quantile
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.deploy.shift.rhythm import (
    Pattern,
    find_pattern,
    lasting_change,
    without_rhythm,
)
from lifelong_core.deploy.shift.segmentation import best_partition, block_bounds, change_threshold
from lifelong_core.deploy.simplex import mixture_weights, smoothed, tangent_basis
from lifelong_core.errors import InvalidInputError

MOST_BLOCKS = 200
SHORTEST_SEGMENT = 60.0
"""Effective samples: with fewer, a mean of posteriors is not about normal."""
RARE_SAMPLES = 5.0
"""A class with fewer samples in the window hardly counts: their scatter is not normal either."""
LEAST_GROUPS = 10.0
"""Groups of equal size that a segment comes from at least."""
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
    """interval of `samples_ago`, at CONFIDENCE; where the window is known by buckets, with those that the change may
    have come within"""
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
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        found = take_fields(document, 1, required=_FIELDS)
        for name, kind in (*((name, int) for name in _FIELDS[:3]), *((name, float) for name in _FIELDS[3:6])):
            value = found[name]
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, kind))
                or not 0 <= value <= LARGEST_NUMBER
            ):
                raise InvalidInputError("expected a number that is not negative.", field=name)
        if found["changed_at"] is not None:
            try:
                found["changed_at"] = datetime.fromisoformat(found["changed_at"])
            except (TypeError, ValueError) as error:
                raise InvalidInputError("expected a time in ISO 8601.", field="changed_at") from error
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
    search = _Search(window, threshold * effect, LOCATION_DROP * effect, SHORTEST_SEGMENT * effect)
    splits = search.refined(begins)
    fluctuation = _Fluctuation.of(scores, splits, effect, times, threshold)
    pattern, scatter = fluctuation.pattern, None
    if pattern is not None:
        places = [split.at for split in splits]
        if pattern == "jitter":
            lasting = fluctuation.lasting_change(level)
            splits = [] if lasting is None else search.refined((0, lasting))
        else:
            splits = fluctuation.change_beside_rhythm(threshold)
        scatter = _scatter(window, places, since=splits[-1].at if splits else 0)
    changes = tuple(_change_point(window, split, effect) for split in splits)
    alternatives = _alternatives(splits, scores, effect, threshold) if pattern is None or splits else ()
    return Segmentation(changes, (0, *(split.at for split in splits)), alternatives, pattern, scatter)


def _alternatives(
    splits: Sequence["_Split"], scores: "_Scores", effect: float, threshold: float
) -> tuple[tuple[int, float], ...]:
    """Where else the last segment may begin, and with which weight."""
    if not splits:
        at, gain = scores.next_best(effect)
        return ((at, _probability(gain, threshold)),)
    last = splits[-1]
    none = (last.begin, 1 - _probability(2 * last.gain / effect, threshold))
    ends = tuple((piece, _END_OF_INTERVAL) for piece in (last.low, last.high) if piece != last.at)
    return (*ends, none)


def _scatter(window: OrderedWindow, changes: Sequence[int], *, since: int) -> Floats:
    """Covariance of the prevalence from a piece on, (C, C), where that of each segment is a draw of its own."""
    later = [since, *(piece for piece in changes if piece > since)]
    if since == 0 or len(later) > 1:
        return _scatter_of_mean(window, [*later, window.pieces])
    # One segment shows no scatter: the mix jitters as it did before, and longer segments even it out.
    before, after = window.ends[since], window.ends[-1] - window.ends[since]
    earlier = [piece for piece in changes if piece < since]
    return _scatter_of_mean(window, [0, *earlier, since]) * (float(before) / float(after))


def _scatter_of_mean(window: OrderedWindow, bounds: Sequence[int]) -> Floats:
    """Covariance of the mean prevalence, (C, C), of segments between these pieces, whose prevalences are draws."""
    pairs = list(pairwise(bounds))
    found = np.array([_Mixture.of(window, begin, end).prevalence for begin, end in pairs])
    shares = np.diff(window.ends[[*bounds]])
    shares /= shares.sum()
    moves = (found - shares @ found) * shares[:, np.newaxis]
    return moves.T @ moves * (len(pairs) / max(len(pairs) - 1, 1))


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

    def threshold(self, level: float, effect: float) -> float:
        """Twice the log likelihood that a change must gain, in a window of independent samples."""
        share = min(SHORTEST_SEGMENT * effect / float(self.window.counts.sum()), 0.4)
        return change_threshold(self.window.classes - 1, level=level, shortest_share=share)

    def _design_effect(self, segments: Sequence[int]) -> float:
        """How much more the sums of groups scatter than those of as many independent samples, at least 1."""
        if self.window.group_piece is None:
            return 1.0
        number = self.window.groups_in(0, self.window.pieces)
        if number < LEAST_GROUPS:
            # Their scatter cannot be told from the change that is looked for: each says as much as one sample.
            return max(1.0, float(self.window.sizes.sum()) / number)
        sizes = np.add.reduceat(self.window.sizes, segments)
        means = np.add.reduceat(self.sums, segments, axis=0) / sizes[:, np.newaxis]
        centres = np.repeat(means, np.diff([*segments, self.window.pieces]), axis=0)
        grouped = self.window.group_sums(self.scores, centres)
        entries = self.scores[self.window.group_point] - centres[self.window.group_piece]
        alone = (lower_solve(self._factor, entries.T) ** 2).sum(axis=0) @ self.window.group_counts
        together = (lower_solve(self._factor, grouped.T) ** 2).sum()
        return max(1.0, float(together / alone)) if alone > 0 else 1.0


@dataclass(frozen=True)
class _Fluctuation:
    """Blocks of a window, and whether its changes come and go."""

    pieces: Integers
    """shape (B + 1,), where the blocks begin and end"""
    sums: Floats
    sizes: Floats
    times: Floats | None
    begins: Sequence[int]
    """first blocks of the segments"""
    pattern: Pattern | None

    @classmethod
    def of(
        cls, scores: _Scores, splits: Sequence["_Split"], effect: float, times: Floats | None, price: float
    ) -> Self:
        sums, sizes = scores.whitened()
        sums, sizes = sums / effect, sizes / effect
        # Two changes within one block count as one.
        first = np.minimum(
            np.searchsorted(scores.bounds, [0, *(split.at for split in splits)]), sizes.size - 1
        )
        begins: list[int] = np.unique(first).tolist()
        moments = None if times is None else times[scores.bounds[:-1]]
        found = find_pattern(sums, sizes, moments, begins, price)
        return cls(scores.bounds, sums, sizes, moments, begins, found)

    def lasting_change(self, level: float) -> int | None:
        """The first piece after a change that stays in spite of jitter."""
        segment = lasting_change(self.sums, self.sizes, self.begins, level)
        return None if segment is None else int(self.pieces[self.begins[segment]])

    def change_beside_rhythm(self, price: float) -> list["_Split"]:
        """The last change of what the rhythm leaves, to whole blocks."""
        if self.times is None or self.pattern is None:
            return []
        rest = without_rhythm(self.sums, self.sizes, self.times, self.pattern)
        found = best_partition(rest, self.sizes, penalty=price, shortest=SHORTEST_SEGMENT)
        if not found:
            return []
        begin = found[-2] if len(found) > 1 else 0
        sums, sizes = np.cumsum(rest[begin:], axis=0), np.cumsum(self.sizes[begin:])
        level = sums[-1] / sizes[-1]
        left = (sums - sizes[:, np.newaxis] * level)[:-1]
        gains = (left**2).sum(axis=1) * sizes[-1] / (sizes * (sizes[-1] - sizes))[:-1] / 2
        near = np.flatnonzero(gains >= gains.max() - LOCATION_DROP) + begin + 1
        at, low, high = found[-1], min(found[-1], int(near[0])), max(found[-1], int(near[-1]))
        piece = self.pieces
        return [
            _Split(
                int(piece[begin]),
                int(piece[low]),
                int(piece[at]),
                int(piece[high]),
                int(piece[-1]),
                float(gains.max()),
            )
        ]


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


@dataclass(frozen=True)
class _Search:
    """The places of changes by the likelihood of the mixtures before and after."""

    window: OrderedWindow
    least_gain: float
    """twice the log likelihood that a change must gain"""
    drop: float
    """log likelihood that a place within the interval may lack"""
    shortest: float
    """samples of a segment"""

    def refined(self, begins: Sequence[int]) -> list["_Split"]:
        """Each change at its most likely piece; without those that gain too little, one by one or two for one."""
        starts = list(begins)
        position = 1
        splits = dict[int, _Split]()
        while position < len(starts):
            ends = [*starts[position + 1 :], self.window.pieces]
            split = self.split(starts[position - 1], starts[position], ends[0])
            if 2 * split.gain < self.least_gain or not self._comes_of_many(split):
                del starts[position]
                position = max(1, position - 1)
                continue
            both = self._instead(starts, position, split, ends[0])
            if both is not None:
                starts[position - 1 : position + 1] = [both]
                position -= 1
                continue
            starts[position] = split.at
            splits[split.at] = split
            position += 1
        # The neighbours of a change may have moved since.
        return [
            self.split(starts[place - 1], starts[place], ([*starts, self.window.pieces])[place + 1])
            for place in range(1, len(starts))
        ]

    def split(self, begin: int, at: int, end: int) -> "_Split":
        """The best place of one change among pieces begin..end-1, searched from `at` on."""
        window = self.window
        reach = window.ends[begin : end + 1]
        shortest = min(self.shortest, (reach[-1] - reach[0]) / 2)
        allowed = (reach - reach[0] >= shortest) & (reach[-1] - reach >= shortest)
        curve: Floats = np.zeros(reach.size)
        for _ in range(_REFINEMENTS if allowed.any() else 0):
            before, after = _Mixture.of(window, begin, at), _Mixture.of(window, at, end)
            ratio = np.log(window.densities @ before.prevalence) - np.log(window.densities @ after.prevalence)
            curve = np.concatenate([[0.0], np.cumsum(window.piece_sums(ratio)[begin:end])])
            at = begin + int(np.where(allowed, curve, -np.inf).argmax())
        whole = _Mixture.of(window, begin, end).likelihood
        gain = _Mixture.of(window, begin, at).likelihood + _Mixture.of(window, at, end).likelihood - whole
        near = np.flatnonzero(curve[1:-1] >= curve[at - begin] - self.drop) + begin + 1
        low, high = (at, at) if near.size == 0 else (min(at, int(near[0])), max(at, int(near[-1])))
        return _Split(begin, low, at, high, end, gain)

    def _comes_of_many(self, split: "_Split") -> bool:
        """Are there groups enough on either side that none of them makes the change by itself?"""
        return all(
            self.window.groups_in(*part) >= LEAST_GROUPS
            for part in ((split.begin, split.at), (split.at, split.end))
        )

    def _instead(self, starts: Sequence[int], position: int, split: "_Split", end: int) -> int | None:
        """Where one change does as well as the one before `position` and this split: a block that a change cuts in two
        may have become a segment of its own. None: nowhere."""
        if position < 2:
            return None
        begin, middle = starts[position - 2], starts[position - 1]
        earlier = self.split(begin, middle, split.at)
        for start in (middle, split.at):
            one = self.split(begin, start, end)
            later = _Mixture.of(self.window, split.at, end).likelihood
            whole = _Mixture.of(self.window, begin, end).likelihood
            first = _Mixture.of(self.window, begin, split.at).likelihood
            pair = first + later - whole + earlier.gain
            if 2 * (pair - one.gain) < self.least_gain:
                return one.at
        return None


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
    # A change within a piece shows at its begin or its end.
    earliest = split.low - (window.sizes[split.low - 1] > 1)
    latest = split.high + (window.sizes[split.high] > 1)
    return ChangePoint(
        samples_ago=round(float(ago[split.at])),
        low=round(float(ago[latest])),
        high=round(float(ago[earliest])),
        size=size,
        size_low=max(0.0, size - reach),
        size_high=min(2.0, size + reach),
    )
