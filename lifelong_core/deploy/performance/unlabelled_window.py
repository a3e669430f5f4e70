"""A window without labels: the match of its logit scale, and all that estimates of any head share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.fitted_calibration import FittedCalibration
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.performance.effects import Effects
from lifelong_core.deploy.performance.performance_estimate import MATCHED, RATES
from lifelong_core.deploy.performance.posteriors import JudgedWindow, WindowPosteriors
from lifelong_core.deploy.performance.ranking import DecisionRates
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.deploy.quantification.window_summary import WindowSummary
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


@dataclass(frozen=True, eq=False)
class UnlabelledWindow:
    """A window of unlabelled logits, and its estimated prevalence."""

    quantifier: FittedQuantifier
    window: ArrayLike | WindowSummary
    """logits, (N, C), or a summary by the quantifier"""
    groups: ArrayLike | None
    """shape (N,), groups of the rows"""
    analysis: Analysis
    """of this window by the quantifier"""

    @cached_property
    def matched(self) -> ScaleMatch:
        """The window after the logit-scale match."""
        return match_scale(self.quantifier, self.window, self.analysis, self.groups)

    @cached_property
    def _unmatched(self) -> ScaleMatch:
        return ScaleMatch(1.0, self.window, self.analysis)

    @cached_property
    def _matched_posteriors(self) -> WindowPosteriors:
        return self._posteriors_of(self.matched)

    @cached_property
    def _unmatched_posteriors(self) -> WindowPosteriors:
        return self._posteriors_of(self._unmatched)

    def _posteriors_of(self, match: ScaleMatch) -> WindowPosteriors:
        return WindowPosteriors.of(self.quantifier, match.window, match.analysis.estimate.prevalence)

    def judge(self, head: PostProcessingHead) -> "JudgedHead":
        """Prepare the estimates for one head."""
        return JudgedHead(self, head, JudgedWindow.of(self.window, head))

    def match(self, method: str) -> ScaleMatch:
        """The window that a method uses: after the match, or as it is."""
        return self.matched if method == MATCHED else self._unmatched

    def posteriors(self, method: str) -> WindowPosteriors:
        """Posteriors of the rows of that window."""
        if self.match(method).factor == 1:
            return self._unmatched_posteriors
        return self._matched_posteriors


@dataclass(frozen=True, eq=False)
class JudgedHead:
    """Estimates of one head's performance in a window, by methods that use the estimated prevalence."""

    evidence: UnlabelledWindow
    head: PostProcessingHead
    window: JudgedWindow

    @cached_property
    def _held_out_rates(self) -> DecisionRates:
        calibration = FittedCalibration.of(self.evidence.quantifier)
        return DecisionRates.of(calibration.data, self.head, calibration.held_out_output(self.head))

    @cached_property
    def _matched_rates(self) -> DecisionRates:
        calibration = FittedCalibration.of(self.evidence.quantifier)
        # The window's logits times the factor have the calibration set's scale.
        output = calibration.held_out_output(self.head, factor=1 / self.evidence.matched.factor)
        return DecisionRates.of(calibration.data, self.head, output)

    def rates(self, method: str) -> DecisionRates:
        """Decisions on calibration samples with the logit scale of the window that the method uses."""
        return self._held_out_rates if self.evidence.match(method).factor == 1 else self._matched_rates

    def confusions(self, method: str) -> tuple[Floats, Floats]:
        """Confusion matrices by posteriors and by rates, shares of shape (C, D) each."""
        prevalence = self.evidence.match(method).analysis.estimate.prevalence
        posteriors = self.evidence.posteriors(method).posteriors
        return (
            self.window.confusion(posteriors, self.head.costs.shape[1]),
            self.rates(method).confusion(prevalence),
        )

    def effects(self, method: str, gradients: Floats, values: Floats) -> tuple[Effects, Effects]:
        """Effects on K statistics of the confusion matrix, by posteriors and by rates.

        Args:
            method: whose window is used.
            gradients: shape (K, C, D).
            values: shape (K,).
        """
        evidence = self.evidence
        prevalence = evidence.match(method).analysis.estimate.prevalence
        return (
            evidence.posteriors(method).effects(self.window, gradients, values),
            self.rates(method).effects(prevalence, gradients, values, self.window.counts.size),
        )


def combined(method: str, posteriors: Floats, rates: Floats) -> Floats:
    """Combine a value by posteriors and the same value by rates as the method does: one of the two, or their mean."""
    if method == MATCHED:
        return (posteriors + rates) / 2
    return np.asarray(rates if method == RATES else posteriors, dtype=np.float64)


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
