"""Location of changes: the likelihood of the mixtures before and after a change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.deploy.numerics.simplex import mixture_weights, smooth, tangent_basis
from lifelong_core.deploy.shift.ordered_window import LEAST_GROUPS, OrderedWindow
from lifelong_core.values.arrays import Floats

LOCATION_DROP = 3.676
"""The log likelihood of the true time lies this far below its maximum with probability 0.05: on either side of the
change the log likelihood ratio is a falling random walk, whose maximum exceeds x with probability exp(-x) (Siegmund
1988), and 1 - (1 - exp(-x))^2 = 0.05."""
SHORT_SEGMENTS = 3.0
"""A segment shorter than this many times the shortest one may be a block that a change divides."""
_REFINEMENTS = 2


@dataclass(frozen=True)
class Split:
    """Change between two segments."""

    begin: int
    """first piece of the segment before"""
    low: int
    at: int
    """first piece of the segment after"""
    high: int
    end: int
    """piece after the segment after"""
    gain: float
    """gain of the log likelihood by the change"""


@dataclass(frozen=True)
class Mixture:
    """Maximum likelihood prevalence of some pieces."""

    prevalence: Floats
    likelihood: float
    densities: Floats
    counts: Floats

    @classmethod
    def of(cls, window: OrderedWindow, begin: int, end: int) -> Self:
        """Estimate from pieces begin..end-1."""
        densities, counts = window.part(begin, end)
        uniform: Floats = np.full(window.classes, 1 / window.classes)
        weights = mixture_weights(densities, counts, uniform)
        # With a prevalence of exactly 0, a single sample would determine the place of the change.
        prevalence = smooth(weights, float(counts.sum()))
        likelihood = float(counts @ np.log(densities @ weights))
        return cls(prevalence, likelihood, densities, counts)

    def variance(self, direction: Floats) -> float:
        """Variance of direction . prevalence, from the information of independent samples."""
        basis = tangent_basis(self.prevalence.size)
        scores = self.densities / (self.densities @ self.prevalence)[:, np.newaxis] @ basis
        information = (scores * self.counts[:, np.newaxis]).T @ scores
        reduced = basis.T @ direction
        return float(reduced @ np.linalg.pinv(information, hermitian=True) @ reduced)


@dataclass(frozen=True)
class ChangeSearch:
    """Search for the places of changes by the likelihood of the mixtures before and after."""

    window: OrderedWindow
    least_gain: float
    """threshold for twice the log likelihood gain of a change"""
    drop: float
    """largest drop of the log likelihood within the interval"""
    shortest: float
    """fewest samples of a segment"""

    def refine(self, begins: Sequence[int]) -> list[Split]:
        """Move each change to its most likely piece; remove changes of small gain, and replace two by one."""
        starts = list(begins)
        position = 1
        splits = dict[int, Split]()
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
        bounds = [*starts, self.window.pieces]
        return [
            # The neighbours of a change may have moved since.
            splits[at] if (splits[at].begin, splits[at].end) == (begin, end) else self.split(begin, at, end)
            for begin, at, end in zip(bounds, bounds[1:], bounds[2:], strict=False)
        ]

    def split(self, begin: int, at: int, end: int) -> Split:
        """Best place of one change among pieces begin..end-1; the search starts at `at`."""
        window = self.window
        reach = window.ends[begin : end + 1]
        shortest = min(self.shortest, (reach[-1] - reach[0]) / 2)
        allowed = (reach - reach[0] >= shortest) & (reach[-1] - reach >= shortest)
        curve: Floats = np.zeros(reach.size)
        for _ in range(_REFINEMENTS if allowed.any() else 0):
            before, after = Mixture.of(window, begin, at), Mixture.of(window, at, end)
            densities = window.densities[window.points_of(begin, end)]
            ratio = np.log(densities @ before.prevalence) - np.log(densities @ after.prevalence)
            curve = np.concatenate([[0.0], np.cumsum(window.part_sums(ratio, begin, end))])
            at = begin + int(np.where(allowed, curve, -np.inf).argmax())
        whole = Mixture.of(window, begin, end).likelihood
        gain = Mixture.of(window, begin, at).likelihood + Mixture.of(window, at, end).likelihood - whole
        near = np.flatnonzero(curve[1:-1] >= curve[at - begin] - self.drop) + begin + 1
        low, high = (at, at) if near.size == 0 else (min(at, int(near[0])), max(at, int(near[-1])))
        return Split(begin, low, at, high, end, gain)

    def _comes_of_many(self, split: Split) -> bool:
        """Whether each side has enough groups that no single group causes the change."""
        return all(
            self.window.groups_in(*part) >= LEAST_GROUPS
            for part in ((split.begin, split.at), (split.at, split.end))
        )

    def _instead(self, starts: Sequence[int], position: int, split: Split, end: int) -> int | None:
        """Place that replaces the change before `position` and this one equally well; None: there is none.

        A block that a change divides may have become a separate segment.
        """
        if position < 2:
            return None
        begin, middle = starts[position - 2], starts[position - 1]
        if self.window.ends[split.at] - self.window.ends[middle] > SHORT_SEGMENTS * self.shortest:
            return None
        earlier = self.split(begin, middle, split.at)
        for start in (middle, split.at):
            one = self.split(begin, start, end)
            later = Mixture.of(self.window, split.at, end).likelihood
            whole = Mixture.of(self.window, begin, end).likelihood
            first = Mixture.of(self.window, begin, split.at).likelihood
            pair = first + later - whole + earlier.gain
            if 2 * (pair - one.gain) < self.least_gain:
                return one.at
        return None
