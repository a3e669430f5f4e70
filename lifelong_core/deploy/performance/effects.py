"""First-order effects of samples on statistics of a window, and the intervals that follow from them."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.deploy.quantification.uncertainty import Influence, Spread
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True, eq=False)
class Effects:
    """Values of K statistics of a window, and how single samples move them."""

    values: Floats
    """shape (K,)"""
    window: Floats
    """shape (U, K), one row for each distinct row of the window: the statistic moves by the mean over the samples"""
    prevalence: Floats
    """shape (C, K), change per change of the estimated prevalence"""
    calibration: Floats
    """shape (M, K): the statistic moves by the sum over classes of the mean over the class's calibration samples;
    (0, K) where only `window` is used"""
    doubt: Floats
    """shape (K,), variance that the samples' effects do not show"""

    @classmethod
    def average(cls, first: Self, second: Self, values: Floats, doubt: Floats) -> Self:
        """Mean of two estimates, with its own values and additional doubt, shape (K,) each."""
        return cls(
            values,
            (first.window + second.window) / 2,
            (first.prevalence + second.prevalence) / 2,
            (first.calibration + second.calibration) / 2,
            (first.doubt + second.doubt) / 4 + doubt,
        )

    def with_doubt(self, doubt: Floats) -> Self:
        """Return these effects with more doubt, shape (K,)."""
        return replace(self, doubt=self.doubt + doubt)

    def select(self, columns: slice) -> Self:
        """Select some of the statistics."""
        return type(self)(
            self.values[columns],
            self.window[:, columns],
            self.prevalence[:, columns],
            self.calibration[:, columns],
            self.doubt[columns],
        )

    def with_more(self, other: Self) -> Self:
        """Append other statistics of the same window."""
        return type(self)(
            np.concatenate([self.values, other.values]),
            np.hstack([self.window, other.window]),
            np.hstack([self.prevalence, other.prevalence]),
            np.hstack([self.calibration, other.calibration]),
            np.concatenate([self.doubt, other.doubt]),
        )

    def variances(self, analysis: Analysis, truth: "TrueClasses") -> tuple[Floats, Floats]:
        """Variance and degrees of freedom of each statistic, shape (K,) each; 0 degrees: the spread is unknown.

        The variance counts the window (its groups, where known), the calibration set (its groups), the estimated
        prevalence, which depends on both, and the doubt of both estimates. It is the larger one of two: of the error
        from the population's value, and from the value that the true classes of this window will give.
        """
        unseen = analysis.doubt + analysis.change_doubt
        fixed = (self.prevalence * (unseen @ self.prevalence)).sum(axis=0) + self.doubt
        of_population = self._spread(analysis, self.window)
        of_window = self._spread(analysis, self.window - truth.means)
        population = np.diag(of_population.covariance)
        window = np.diag(of_window.covariance) + truth.variances / analysis.estimate.effective_n
        is_larger = window > population
        freedom = np.where(is_larger, of_window.degrees_of_freedom, of_population.degrees_of_freedom)
        return np.maximum(np.maximum(population, window) + fixed, 0), freedom

    def _spread(self, analysis: Analysis, window: Floats) -> Spread:
        through = analysis.influence
        return analysis.spread(
            Influence(
                through.window @ self.prevalence + window,
                through.pseudo @ self.prevalence,
                through.calibration @ self.prevalence + self.calibration,
            )
        )


@dataclass(frozen=True, eq=False)
class TrueClasses:
    """Effects of the unknown true classes of the window's samples on K statistics of it, given their posteriors."""

    means: Floats
    """shape (U, K), expected effect of each row's true class"""
    variances: Floats
    """shape (K,), mean variance of the effect of a sample's true class"""

    def select(self, columns: slice) -> Self:
        """Select some of the statistics."""
        return type(self)(self.means[:, columns], self.variances[columns])

    def with_more(self, other: Self) -> Self:
        """Append other statistics of the same window."""
        return type(self)(
            np.hstack([self.means, other.means]), np.concatenate([self.variances, other.variances])
        )
