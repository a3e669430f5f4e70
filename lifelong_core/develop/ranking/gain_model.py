"""From the order of sources to expected gains with intervals."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.values import ArrayValue


@dataclass(frozen=True, eq=False)
class GainModel(ArrayValue):
    """Gain of one measure in one scenario: a level that any source brings, and what the order of sources adds.

    gain = level + baseline_slope * (baseline - mean_baseline) + score_slope * score + residual. The residuals are
    those of targets whose whole data set was left out of the fit.
    """

    level: float
    """mean gain over sources and data sets"""
    mean_baseline: float
    baseline_slope: float
    score_slope: float
    """0: the order of the sources did not carry over to data sets that were left out"""
    residuals: Floats
    """(R,): of sources of targets with the baseline known"""
    plain_residuals: Floats
    """(R,): of the same pairs, as if the baseline was not known"""
    residual_weights: Floats
    """(R,), sum to 1: each data set counts the same"""
    datasets: int
    """data sets of the targets"""

    def target_level(self, baseline: float | None) -> float:
        """Mean gain to expect from any source."""
        if baseline is None:
            return self.level
        return self.level + self.baseline_slope * (baseline - self.mean_baseline)

    def residual_limits(self, confidence: float, *, baseline_known: bool) -> tuple[float, float]:
        """Limits of the prediction interval around the expected gain (cross-conformal by data set).

        The data set of the new target is as likely as each known one to have the largest residuals, so one further data
        set with the most extreme ones is added (Vovk, 2015; Barber et al., 2021).
        """
        residuals = self.residuals if baseline_known else self.plain_residuals
        tail = (1 - confidence) / 2
        extreme = 0.5 / (self.datasets + 1)
        order = np.argsort(residuals)
        weights = np.concatenate([[extreme], self.residual_weights[order] * (1 - 2 * extreme), [extreme]])
        values = np.concatenate([residuals[order][:1], residuals[order], residuals[order][-1:]])
        below = np.cumsum(weights)
        low = values[np.searchsorted(below, tail)]
        high = values[min(int(np.searchsorted(below, 1 - tail)), values.size - 1)]
        return float(min(low, 0.0)), float(max(high, 0.0))
