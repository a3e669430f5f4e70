"""From the scores of sources to expected gains with intervals."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True, eq=False)
class Residuals(ArrayValue):
    """Gain minus expected gain of R pairs of tasks whose target was left out of the fit with its data set."""

    values: Floats
    """(2, R): with the baseline of the target known, and not known"""
    weights: Floats
    """(R,), sum to 1: each data set of targets counts the same"""


@dataclass(frozen=True, eq=False)
class GainModel(ArrayValue):
    """Gain of one measure in one scenario.

    gain = level + baseline_slope * (baseline - mean_baseline) + score_slope * score + residual. Sources without a track
    record have residuals of their own, which are larger.
    """

    level: float
    """gain by an average source, mean over data sets"""
    mean_baseline: float
    baseline_slope: float
    score_slope: float
    """gain for a unit of the score on data sets that were left out, above 0"""
    measured: Residuals
    """of sources with a track record"""
    new: Residuals
    """of sources without one"""
    datasets: int
    """data sets of the targets"""

    def target_level(self, baseline: float | None) -> float:
        """Gain to expect from an average source."""
        if baseline is None:
            return self.level
        return self.level + self.baseline_slope * (baseline - self.mean_baseline)

    def expected_gains(self, scores: Floats, baseline: float | None) -> Floats:
        """Expected gain of each source, shape (K,)."""
        return self.target_level(baseline) + self.score_slope * scores

    def residual_variance(self, *, baseline_known: bool) -> float:
        """Mean square of the residuals of sources with a track record."""
        return float(self.measured.weights @ self.measured.values[0 if baseline_known else 1] ** 2)

    def residual_limits(
        self, confidence: float, *, is_measured: bool, baseline_known: bool
    ) -> tuple[float, float]:
        """Limits of the prediction interval around the expected gain (cross-conformal by data set).

        The data set of the new target is as likely as each known one to have the largest residuals, so one further data
        set with the most extreme ones is added (Vovk, 2015; Barber et al., 2021).
        """
        held = self.measured if is_measured else self.new
        residuals = held.values[0 if baseline_known else 1]
        tail = (1 - confidence) / 2
        extreme = 0.5 / (self.datasets + 1)
        order = np.argsort(residuals)
        weights = np.concatenate([[extreme], held.weights[order] * (1 - 2 * extreme), [extreme]])
        values = np.concatenate([residuals[order][:1], residuals[order], residuals[order][-1:]])
        below = np.cumsum(weights)
        low = values[np.searchsorted(below, tail)]
        high = values[min(int(np.searchsorted(below, 1 - tail)), values.size - 1)]
        return float(min(low, 0.0)), float(max(high, 0.0))
