"""Inputs and estimates of a cycle that are not in its report."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from lifelong_core.deploy.adaptation.policy import AdaptationPolicy
from lifelong_core.deploy.adaptation.target_prevalence import add_pseudo_samples
from lifelong_core.deploy.adaptation.windows import FollowedWindow, mean_features
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion, expected_criterion
from lifelong_core.deploy.fitted_calibration import FittedCalibration
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.label_shift.assumption_test import assumption_test
from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.deploy.performance.unlabelled_window import UnlabelledWindow
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.deploy.quantification.window_summary import WindowSummary

if TYPE_CHECKING:
    from lifelong_core.deploy.performance.derived_metrics import RequestedMetrics


@dataclass(frozen=True)
class Findings:
    """Estimates of a cycle for its window and the present head."""

    fitted: FittedQuantifier
    followed: FollowedWindow
    head: PostProcessingHead
    policy: AdaptationPolicy
    analysis: Analysis
    metrics: "RequestedMetrics | None"
    """to estimate; None: no estimate of performance"""

    @property
    def calibration(self) -> FittedCalibration:
        """The calibration set with its quantifier."""
        return FittedCalibration.of(self.fitted)

    @property
    def window(self) -> ArrayLike | WindowSummary:
        """The window from the last change on."""
        return self.followed.window

    @cached_property
    def assumption_test(self) -> AssumptionTest:
        """Test of "only the prevalence has changed" on the window."""
        reference, estimate = self.fitted.assumption_reference, self.analysis.estimate
        return assumption_test(
            reference,
            mean_features(self.window, reference),
            n=estimate.n,
            effective_n=estimate.effective_n,
            level=self.policy.assumption_level,
            class_names=self.head.class_names,
        )

    def performance(self, head: PostProcessingHead) -> PerformanceEstimate | None:
        """Performance of a head in this window."""
        if self.metrics is None:
            return None
        # Here and not above: a service never comes here, and starts earlier without the metric pool.
        from lifelong_core.deploy.performance.estimate_performance import judge_head

        return judge_head(self._unlabelled_window, head, self.assumption_test, self.metrics)

    def criterion(self, head: PostProcessingHead, analysis: Analysis, seed: int) -> ExpectedCriterion | None:
        """Expected metric of a head's decision rule in the population that was analysed."""
        data, estimate = self.fitted.calibration, analysis.estimate
        prevalence = add_pseudo_samples(estimate, data.samples)
        return expected_criterion(
            head,
            data,
            prevalence,
            covariance=estimate.covariance,
            confidence=self.policy.confidence,
            rng=seed,
        )

    @cached_property
    def _unlabelled_window(self) -> UnlabelledWindow:
        return UnlabelledWindow(self.fitted, self.window, self.followed.groups, self.analysis)

    @property
    def superseded(self) -> bool:
        """Whether the head was fitted on another calibration set."""
        own = self.fitted.calibration.digest
        return self.head.provenance.get("calibration_digest", own) != own
