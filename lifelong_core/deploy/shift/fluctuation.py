"""Fluctuations: a window with temporary changes of the prevalence, its lasting changes, and the error of its mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from lifelong_core.deploy.shift.efficient_scores import EfficientScores
from lifelong_core.deploy.shift.location import LOCATION_DROP, Mixture, Split
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.deploy.shift.rhythm import Pattern, find_lasting_change, find_pattern, remove_rhythm
from lifelong_core.deploy.shift.segmentation import SHORTEST_SEGMENT, best_partition
from lifelong_core.values.arrays import Floats, Integers


@dataclass(frozen=True)
class Fluctuation:
    """Blocks of a window, and the pattern of its changes."""

    pieces: Integers
    """shape (B + 1,), bounds of the blocks"""
    sums: Floats
    sizes: Floats
    times: Floats | None
    begins: Sequence[int]
    """first blocks of the segments"""
    pattern: Pattern | None

    @classmethod
    def of(
        cls,
        scores: EfficientScores,
        splits: Sequence[Split],
        effect: float,
        times: Floats | None,
        price: float,
    ) -> Self:
        """Find the pattern in the changes of a window.

        Args:
            scores: scores of the window.
            splits: changes of the window.
            effect: design effect of the groups.
            times: shape (P,), times of the pieces; None: unknown.
            price: threshold for twice the log likelihood gain of a change, in a window of independent samples.
        """
        sums, sizes = scores.whiten()
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
        """First piece after a lasting change beyond the jitter; None: there is none."""
        segment = find_lasting_change(self.sums, self.sizes, self.begins, level)
        return None if segment is None else int(self.pieces[self.begins[segment]])

    def change_beside_rhythm(self, price: float) -> list[Split]:
        """Last change after removal of the rhythm, located to whole blocks."""
        if self.times is None or self.pattern is None:
            return []
        rest = remove_rhythm(self.sums, self.sizes, self.times, self.pattern)
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
            Split(
                int(piece[begin]),
                int(piece[low]),
                int(piece[at]),
                int(piece[high]),
                int(piece[-1]),
                float(gains.max()),
            )
        ]


def scatter_since(window: OrderedWindow, changes: Sequence[int], *, since: int) -> Floats:
    """Covariance of the prevalence after a piece, (C, C), if each segment's prevalence is a random draw."""
    later = [since, *(piece for piece in changes if piece > since)]
    if since == 0 or len(later) > 1:
        return _scatter_of_mean(window, [*later, window.pieces])
    # One segment has no scatter of its own: that of the earlier mix is used, and decreases with the segment's length.
    before, after = window.ends[since], window.ends[-1] - window.ends[since]
    earlier = [piece for piece in changes if piece < since]
    return _scatter_of_mean(window, [0, *earlier, since]) * (float(before) / float(after))


def _scatter_of_mean(window: OrderedWindow, bounds: Sequence[int]) -> Floats:
    """Covariance of the mean prevalence, (C, C), of segments between these pieces with random prevalences."""
    pairs = list(pairwise(bounds))
    found = np.array([Mixture.of(window, begin, end).prevalence for begin, end in pairs])
    shares = np.diff(window.ends[[*bounds]])
    shares /= shares.sum()
    moves = (found - shares @ found) * shares[:, np.newaxis]
    return moves.T @ moves * (len(pairs) / max(len(pairs) - 1, 1))
