"""Intervals of values, also for values that do not vary in the resamples."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.design.validation.values.metric_value import ValueInterval
from lifelong_core.metrics.resampling.bootstrap import DELETIONS
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.arrays import Floats, Integers, Mask
from lifelong_core.values.scientific import normal_quantile, t_quantile, weighted_counts

LARGEST_BIAS = 1.0
"""In standard errors: how much larger or smaller a metric may be on resampled data for its interval to be corrected"""
FEWEST_CASES = 2
"""One case tells nothing about the spread: in every draw it is the same or missing"""
LARGEST_MISSING = 0.5
"""Largest share of resampled data sets in which the metric may be undefined"""
UNSEEN = 4.0
"""Cases that differ, beyond those seen, with which the variance of a difference counts"""
FEWEST_INFLUENCES = 3.0
"""Fewer influences tell nothing about the spread"""
TOO_FEW_CASES = "No interval: every class or decision that counts in it needs two independent cases."
BY_CHANCE = "The interval allows for the error that calibrated predictions of as many cases have by chance."
MOSTLY_UNDEFINED = "No interval: too few resampled data sets have a value."

BLOCK = 1 << 19
"""Weights in memory at a time: 4 MB"""


@dataclass(frozen=True)
class ValueBounds:
    """The interval of one value."""

    low: float
    high: float
    method: ValueInterval
    replicates: int
    """resampled data sets in which the metric is defined"""
    notes: tuple[str, ...]


def value_bounds(
    values: Bootstrap,
    *,
    level: float,
    limits: tuple[float, float],
    cases: int,
    chance: tuple[float, float] | None = None,
) -> ValueBounds:
    """The interval of a scalar metric.

    Args:
        values: the metric of the data, and resampled.
        level: nominal coverage.
        limits: the least and the largest value that the metric can have.
        cases: independent cases that the value rests on.
        chance: how much too large and how much too small the estimate may be on average by chance, such as by the
            calibration error of calibrated predictions and by 0; None: it has no such bias.

    Examples:
        >>> always_right = Bootstrap(np.array(1.0), np.ones(100), ())
        >>> found = value_bounds(always_right, level=0.9, limits=(0.0, 1.0), cases=59)
        >>> round(found.low, 3), found.high, found.method
        (0.95, 1.0, 'unseen')
    """
    estimate = float(values.estimate)
    defined: Floats = values.replicates[~np.isnan(values.replicates)]
    missing = len(values.replicates) - defined.size
    notes = (f"Undefined in {missing} of {len(values.replicates)} resampled data sets.",) if missing else ()
    if math.isnan(estimate) or defined.size == 0:
        said = notes if defined.size else ()  # the reason for the estimate says it
        return ValueBounds(math.nan, math.nan, "bca", defined.size, said)
    if cases < FEWEST_CASES or missing > LARGEST_MISSING * len(values.replicates):
        why = TOO_FEW_CASES if cases < FEWEST_CASES else MOSTLY_UNDEFINED
        return ValueBounds(math.nan, math.nan, "bca", defined.size, (*notes, why))
    if (defined == defined[0]).all() or _is_constant(defined, estimate):
        return _unseen(estimate, level, limits, cases, defined.size, notes)
    if chance is not None:
        return _debiased(estimate, defined, level, limits, chance, notes)
    # From there on, a narrower interval would not hold the estimate.
    if abs(_bias(estimate, defined)) > min(LARGEST_BIAS, float(normal_quantile((1 + level) / 2))):
        return _reflected(values, estimate, level, limits, notes)
    found = values.interval(level=level)
    return ValueBounds(found.low, found.high, "bca", defined.size, notes)


def difference_bounds(
    values: Bootstrap,
    *,
    level: float,
    limits: tuple[float, float],
    cases: int,
    chance: tuple[float, float] | None = None,
) -> ValueBounds:
    """`value_bounds` of a difference on the same cases, wider where few cases make the difference.

    Two models that decide alike differ by a handful of cases, of which resampled data show too little: intervals of
    95 % then hold 80 to 90 %. Both ends move away from the estimate by the ratio of the quantiles of the t and the
    normal distribution, and as if four more cases differed (Agresti and Coull 1998). The number of cases that differ is
    that of equal influences with the same kurtosis.

    Examples:
        >>> from lifelong_core.metrics.resampling.intervals import LeftOut
        >>> few = np.zeros(200)
        >>> few[:10] = 1 / 200  # ten of 200 cases make the difference
        >>> drawn = np.random.default_rng(0).binomial(200, 0.05, 500) / 200
        >>> found = Bootstrap(np.array(0.05), drawn, (LeftOut(0.05 - few, np.ones(200, np.int64)),))
        >>> plain = value_bounds(found, level=0.95, limits=(-1.0, 1.0), cases=200)
        >>> wider = difference_bounds(found, level=0.95, limits=(-1.0, 1.0), cases=200)
        >>> [round(end, 3) for end in (wider.low, plain.low, plain.high, wider.high)]
        [0.017, 0.025, 0.085, 0.096]
    """
    bounds = value_bounds(values, level=level, limits=limits, cases=cases, chance=chance)
    estimate = float(values.estimate)
    if bounds.method not in ("bca", "basic") or not math.isfinite(bounds.high - bounds.low):
        return bounds
    number = max(_effective_influences(values, cases), FEWEST_INFLUENCES)
    share = (1 + level) / 2
    factor = float(t_quantile(number - 1, share) / normal_quantile(share)) * math.sqrt(1 + UNSEEN / number)
    return replace(
        bounds,
        low=max(limits[0], estimate - factor * (estimate - bounds.low)),
        high=min(limits[1], estimate + factor * (bounds.high - estimate)),
    )


def _effective_influences(values: Bootstrap, cases: int) -> float:
    """Number of cases with equal influence that would have the kurtosis of these influences.

    A jackknife value without several cases has the sum of their influences, whose excess kurtosis is smaller by their
    number.
    """
    left = np.concatenate([np.empty(0), *(part.values for part in values.left_out)])
    if left.size == 0 or not np.isfinite(left).all():
        return float(cases)
    moved = left - left.mean()
    squares = float(np.square(moved).sum())
    if squares == 0:
        return float(cases)
    together = max(1.0, cases / left.size)
    kurtosis = left.size * float(np.square(np.square(moved)).sum() / squares**2)
    return max(cases, left.size) / max(1.0, 3 + together * (kurtosis - 3))


def _debiased(
    estimate: float,
    defined: Floats,
    level: float,
    limits: tuple[float, float],
    chance: tuple[float, float],
    notes: tuple[str, ...],
) -> ValueBounds:
    """The spread of the replicates around the estimate, widened by the bias that chance may make.

    A mean of distances is too large by chance: the most where the true distances are 0, and by less the larger they
    are. Resampling does not tell by how much, as the observed distances hold the chance already. So the lower end is
    that of the largest bias, and the upper end that of none.
    """
    spread = defined - defined.mean()
    below, above = np.quantile(spread, [(1 - level) / 2, (1 + level) / 2]).tolist()
    low = max(limits[0], min(estimate - max(chance[0], 0.0) - above, estimate))
    high = min(limits[1], max(estimate + max(chance[1], 0.0) - below, estimate))
    return ValueBounds(low, high, "debiased", defined.size, (*notes, BY_CHANCE))


def _reflected(
    values: Bootstrap, estimate: float, level: float, limits: tuple[float, float], notes: tuple[str, ...]
) -> ValueBounds:
    """Basic bootstrap interval: the replicates reflected at the estimate."""
    found = values.interval(level=level, method="percentile")
    low, high = (max(limits[0], min(2 * estimate - end, limits[1])) for end in (found.high, found.low))
    direction = "large" if found.high - estimate > estimate - found.low else "small"
    why = f"On so few samples the metric is systematically too {direction}, which the interval makes up for."
    return ValueBounds(min(low, estimate), max(high, estimate), "basic", found.replicates, (*notes, why))


def _is_constant(defined: Floats, estimate: float) -> bool:
    """Whether values vary by rounding errors only."""
    return bool(np.isfinite(defined).all() and np.ptp(defined) <= 1e-12 * max(1.0, abs(estimate)))


def _bias(estimate: float, defined: Floats) -> float:
    """The bias of the replicates' median, in standard errors."""
    below = ((defined < estimate).mean() + (defined <= estimate).mean()) / 2
    half = 0.5 / defined.size
    return float(normal_quantile(np.clip(below, half, 1 - half)))


def _unseen(
    estimate: float,
    level: float,
    limits: tuple[float, float],
    cases: int,
    replicates: int,
    notes: tuple[str, ...],
) -> ValueBounds:
    """The share of other outcomes that n equal cases may miss: 1 - (alpha / 2)**(1 / n) (Clopper and Pearson)."""
    varied = "Nothing varied in the resampled data sets"
    if not math.isfinite(estimate) or not all(map(math.isfinite, limits)):
        why = f"{varied}, and the metric has no bound: more samples are needed for an interval."
        return ValueBounds(math.nan, math.nan, "unseen", replicates, (*notes, why))
    share = 1 - ((1 - level) / 2) ** (1 / cases)
    low, high = (estimate + (limit - estimate) * share for limit in limits)
    why = f"{varied}; the interval is that of {cases} independent cases that all turned out alike."
    return ValueBounds(low, high, "unseen", replicates, (*notes, why))


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
