"""Logit-scale match: by what factor a window's logits are larger or smaller than its prevalence explains."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.deploy.quantification.summaries.window_summary import WindowSummary
from lifelong_core.values.arrays import Floats, Logits, as_logits

STANDARD_ERRORS = 2.0
"""The scale differs if the mean log norm is farther than this from its expectation."""
_LARGEST_FACTOR = 16.0


@dataclass(frozen=True, eq=False)
class ScaleMatch:
    """A window with logits of the calibration set's scale."""

    factor: float
    """by which the window's logits were multiplied; 1: they have the calibration set's scale"""
    window: ArrayLike | WindowSummary
    analysis: Analysis
    """of this window"""
    deviation: float = 0.0
    """distance of the mean log norm from its expectation before the match, in standard errors"""

    @property
    def doubt(self) -> float:
        """Weight of the doubt whether the scale differs at all, 0 to 1: it falls with the square of the deviation."""
        return 0.0 if self.factor == 1 else (STANDARD_ERRORS / self.deviation) ** 2


def match_scale(
    quantifier: FittedQuantifier,
    window: ArrayLike | WindowSummary,
    analysis: Analysis,
    groups: ArrayLike | None,
) -> ScaleMatch:
    """Rescale the window's logits if their scale is not that of the calibration set, and estimate the prevalence again.

    The mean log norm of the centred logits is compared with the calibration classes' means, weighted by the estimated
    prevalence. Each of two steps uses the prevalence of the step before.

    Args:
        quantifier: fitted on the calibration set.
        window: logits, (N, C), or a summary.
        analysis: of this window.
        groups: shape (N,), groups of the rows.
    """
    mean, variance = _log_norm(quantifier, window)
    expected, error = _expected(quantifier, analysis, variance)
    deviation = abs(mean - expected) / error if error > 0 else 0.0
    if deviation <= STANDARD_ERRORS:
        return ScaleMatch(1.0, window, analysis, deviation)
    prevalence = quantifier.prevalence(quantifier.rescale(window, _factor(expected - mean)))
    again = float(prevalence @ quantifier.logit_scale.means)
    factor = _factor(again - mean)
    rescaled = quantifier.rescale(window, factor)
    found = quantifier.analyse(rescaled, groups=groups, confidence=analysis.estimate.confidence)
    return ScaleMatch(factor, rescaled, found.with_change_doubt(analysis.change_doubt), deviation)


def _log_norm(quantifier: FittedQuantifier, window: ArrayLike | WindowSummary) -> tuple[float, float]:
    """Mean and variance of the log norm over the window's samples."""
    if isinstance(window, WindowSummary):
        sums, samples = window.log_norms, window.samples
    else:
        rows: Logits = as_logits(window)
        sums, samples = quantifier.logit_scale.sums(rows), len(rows)
    mean, square = (sums / samples).tolist()
    return mean, max(square - mean**2, 0.0)


def _expected(quantifier: FittedQuantifier, analysis: Analysis, variance: float) -> tuple[float, float]:
    """Expected mean log norm under the estimated prevalence, and the standard error of the difference."""
    scale, estimate = quantifier.logit_scale, analysis.estimate
    counts: Floats = quantifier.calibration.counts.astype(np.float64)
    prevalence = estimate.prevalence
    total = (
        variance / estimate.effective_n
        + float(prevalence**2 @ (scale.variances / counts))
        + float(scale.means @ estimate.covariance @ scale.means)
    )
    return float(prevalence @ scale.means), float(np.sqrt(max(total, 0.0)))


def _factor(difference: float) -> float:
    return float(np.clip(np.exp(difference), 1 / _LARGEST_FACTOR, _LARGEST_FACTOR))
