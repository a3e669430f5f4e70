"""Confidence intervals from a statistic of resampled data."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import normal_probability, normal_quantile

IntervalMethod: TypeAlias = Literal["bca", "percentile"]


@dataclass(frozen=True)
class Interval:
    """Statistic with a confidence interval for its value in the population."""

    estimate: float
    low: float
    high: float
    level: float
    """nominal coverage of the interval"""
    method: IntervalMethod
    replicates: int
    """resampled data sets in which the statistic is defined; the others are ignored"""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Statistic of the data without one part, for several parts."""

    values: Floats
    """shape (M, ...)"""
    multiplicity: Integers
    """shape (M,), number of equal parts that each value represents"""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Statistic of the samples, and of samples drawn from them with replacement."""

    estimate: Floats
    """shape () or (K,), e.g. one value per class"""
    replicates: Floats
    """shape (R,) or (R, K)"""
    left_out: tuple[LeftOut, ...]
    """without parts of each stratum; samples were drawn within strata"""

    def interval(self, *, level: float = 0.95, method: IntervalMethod = "bca") -> Interval:
        """Interval of a statistic that is one number; see `intervals`.

        Raises:
            InvalidInputError: the statistic has several values, or as for `intervals`.
        """
        if self.estimate.ndim:
            raise InvalidInputError(
                f"the statistic has {self.estimate.size} values.", hint="Ask for intervals, one for each."
            )
        return self.intervals(level=level, method=method)[0]

    def intervals(self, *, level: float = 0.95, method: IntervalMethod = "bca") -> tuple[Interval, ...]:
        """Intervals, one for each value of the statistic.

        Args:
            level: nominal coverage.
            method: "percentile": quantiles of the replicates. "bca": bias-corrected and accelerated (Efron 1987), at
                other quantiles, which correct for bias and for a spread that depends on the value.

        Returns:
            An interval for each value; nan where the statistic is nan, or is nan in all replicates. If all
            replicates are equal, for example without any error, it has no width: more samples are needed, not more
            replicates.

        Raises:
            InvalidInputError: the level is not between 0 and 1, or there is no such method.

        Examples:
            >>> data = Bootstrap(np.array(50.0), np.arange(101.0), ())
            >>> data.interval(level=0.75, method="percentile")
            Interval(estimate=50.0, low=12.5, high=87.5, level=0.75, method='percentile', replicates=101)
        """
        if not 0 < level < 1:
            raise InvalidInputError(f"expected a number between 0 and 1, got {level}.", field="level")
        if method not in ("bca", "percentile"):
            raise InvalidInputError(f'expected "bca" or "percentile", got "{method}".', field="method")
        estimates, columns = self.estimate.reshape(-1), self.replicates.reshape(len(self.replicates), -1).T
        accelerations = self.acceleration().reshape(-1) if method == "bca" else np.zeros(estimates.size)
        bounds: list[Interval] = []
        for estimate, values, acceleration in zip(estimates.tolist(), columns, accelerations, strict=True):
            defined = np.sort(values[~np.isnan(values)])
            low = high = np.nan
            if defined.size and not np.isnan(estimate):
                shares = np.array([1 - level, 1 + level]) / 2
                if method == "bca":
                    shares = _corrected(shares, estimate, defined, acceleration)
                # The usual quantile, by linear interpolation; that of numpy warns of infinite values.
                low, high = np.interp(shares * (defined.size - 1), np.arange(defined.size), defined).tolist()
            bounds.append(Interval(estimate, low, high, level, method, defined.size))
        return tuple(bounds)

    def acceleration(self) -> Floats:
        """Acceleration: the change of the statistic's spread with its value, by the jackknife; shape () or (K,).

        0 where the statistic depends on no part, or is not finite without one, or no part was left out.
        """
        cubes, squares = np.zeros_like(self.estimate), np.zeros_like(self.estimate)
        for part in self.left_out:
            count = int(part.multiplicity.sum())
            finite = np.isfinite(part.values).all(axis=0)
            values = np.where(finite, part.values, 0.0)
            influences = (part.multiplicity @ values / count - values) * ((count - 1) / count)
            cubes += np.where(finite, part.multiplicity @ influences**3, np.nan)
            squares += part.multiplicity @ influences**2
        return np.nan_to_num(ratio(cubes, 6 * squares**1.5), nan=0.0)


def _corrected(shares: Floats, estimate: float, replicates: Floats, acceleration: float) -> Floats:
    """Quantiles of the replicates that replace those at `shares` (Efron 1987, eq. 2.3)."""
    below = ((replicates < estimate).mean() + (replicates <= estimate).mean()) / 2
    half = 0.5 / replicates.size  # a bias beyond all replicates cannot be told from one of the last
    bias = normal_quantile(np.clip(below, half, 1 - half))
    distances = bias + normal_quantile(shares)
    # Where the correction would turn the order round, it has passed every replicate.
    stretched = ratio(distances, np.maximum(1 - acceleration * distances, 0.0))
    return normal_probability(bias + stretched)
