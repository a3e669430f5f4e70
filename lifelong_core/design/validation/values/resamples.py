"""Resampled data sets as weights of the samples, the same for every metric and model.

A data set that was drawn with replacement is the data set at hand with how often each sample was drawn. So what is
expensive, such as sorting scores, is done once, and the values of all models and metrics can be compared draw by draw.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.metrics.resampling.bootstrap import DELETIONS
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.arrays import Floats, Integers, Mask
from lifelong_core.values.scientific import weighted_counts

BLOCK = 1 << 19
"""Weights in memory at a time: 4 MB"""


@dataclass(frozen=True, eq=False)
class Resamples:
    """How often each unit counts in the data, in each draw, and in each jackknife sample."""

    unit: Integers
    """shape (N,), 0..U-1: which samples are drawn together"""
    times: NDArray[np.uint8]
    """shape (1 + R + M, U): the data as they are, R draws of U units with replacement, and without each of M parts"""
    replicates: int
    """R"""

    @classmethod
    def draw(cls, unit: Integers, *, replicates: int, seed: int) -> Self:
        """The draws of `bootstrap` and `bootstrap_confusions` with groups, from the same seed."""
        units, generator = int(unit.max()) + 1, np.random.default_rng(seed)
        parts = min(units, DELETIONS)
        times = np.ones((1 + replicates + parts, units), np.uint8)
        for row in times[1 : 1 + replicates]:
            # 255 suffices: of more units than that, none is ever drawn so often.
            row[:] = np.bincount(generator.integers(units, size=units), minlength=units)
        block = generator.permutation(units) % parts
        times[1 + replicates + block, np.arange(units)] = 0
        return cls(unit, times, replicates)

    def part(self, rows: Integers | Mask) -> "Resamples":
        """The same draws of some of the samples."""
        return Resamples(self.unit[rows], self.times, self.replicates)

    def first(self, replicates: int) -> "Resamples":
        """At most `replicates` of the draws, with all jackknife samples."""
        end = 1 + min(replicates, self.replicates)
        times = np.concatenate([self.times[:end], self.times[1 + self.replicates :]])
        return Resamples(self.unit, times, end - 1)

    @property
    def as_they_are(self) -> "Resamples":
        """The data without draws and jackknife samples."""
        return Resamples(self.unit, self.times[:1], 0)

    def values(self, weighted: Callable[[NDArray[np.uint8]], Floats]) -> Floats:
        """A metric of the data, of all draws and of all jackknife samples, shape (1 + R + M, ...).

        Args:
            weighted: of how often each sample counts, (B, N), values (B,) or (B, K).
        """
        return np.concatenate([weighted(weights) for weights in self._weights()])

    def of_counts(self, metric: Callable[[Floats], Floats], cells: Integers, *, size: int) -> Floats:
        """As `values`, for a metric of the counts of cells, (B, size).

        Args:
            metric: of counts (B, size), values (B,) or (B, K).
            cells: shape (N,), 0..size-1, those of the samples.
            size: number of cells.
        """
        return np.concatenate([metric(counts) for counts in self._counts(cells, size)])

    def split(self, values: Floats) -> Bootstrap:
        """Values (1 + R + M, ...) as point estimate, replicates and jackknife values."""
        end = 1 + self.replicates
        parts = LeftOut(values[end:], np.ones(len(values) - end, np.int64))
        return Bootstrap(values[0], values[1:end], (parts,))

    def _weights(self, row_size: int = 1) -> Iterator[NDArray[np.uint8]]:
        step = max(1, BLOCK // max(self.unit.size, row_size))
        for start in range(0, len(self.times), step):
            yield np.take(self.times[start : start + step], self.unit, axis=1)

    def _counts(self, cells: Integers, size: int) -> Iterator[Floats]:
        for block in self._weights(size):
            yield np.array([weighted_counts(cells, row, size=size) for row in block.astype(np.float64)])


def map_values(values: Bootstrap, function: Callable[[Floats], Floats]) -> Bootstrap:
    """A function of values (..., K), such as the mean over the last axis, applied to all of them."""
    return Bootstrap(
        function(values.estimate),
        function(values.replicates),
        tuple(LeftOut(function(part.values), part.multiplicity) for part in values.left_out),
    )
