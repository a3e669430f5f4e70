"""Deployment loop: estimate the prevalence, recalibrate, decide (thesis chapter 6).

- `quantification`: prevalence of a window of unlabelled logits
- `calibration`: calibrated probabilities from labelled logits
- `head`, `decision`: probabilities, decisions and expected costs of new logits
- `criterion`: what the metric of a decision rule will be in a population
- `shift`: tests for a shift, change points, the label-shift assumption
- `adaptation`: the cycle, from a window to keep, swap or refuse
- `performance`: how good the decisions are, without labels and with few
- `numerics`: optimisation and other numerical methods
- `labeled`, `labelled_set`, `member_logits`, `documents`, `checks`: data types, their files, and checks
"""

from typing import TYPE_CHECKING, Any

from lifelong_core.decision_rules.rules import (
    Argmax,
    BayesRule,
    CutOffs,
    DecisionRule,
    OptimisedMetric,
    TargetValue,
)
from lifelong_core.deploy.adaptation.adapt import adapt
from lifelong_core.deploy.adaptation.context import AdaptationContext
from lifelong_core.deploy.adaptation.gain import ExpectedGain, ExpectedProbabilityGain
from lifelong_core.deploy.adaptation.policy import AdaptationPolicy
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.deploy.adaptation.report import AdaptationReport
from lifelong_core.deploy.calibration.affine import AffineCalibration, fit_affine
from lifelong_core.deploy.decision import bayes_decisions
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead, fit_head
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.estimate import PerformanceEstimate
from lifelong_core.deploy.quantification.base import FittedQuantifier
from lifelong_core.deploy.quantification.estimate import PrevalenceEstimate
from lifelong_core.deploy.quantification.registry import QUANTIFIERS, Quantifier, quantifier
from lifelong_core.deploy.quantification.summaries.window_summary import WindowSummary
from lifelong_core.deploy.shift.change_points import ChangePoint
from lifelong_core.deploy.shift.label_shift.result import AssumptionTest
from lifelong_core.deploy.shift.sequential.evidence import ShiftEvidence
from lifelong_core.deploy.shift.shift_test import ShiftTest

if TYPE_CHECKING:
    from lifelong_core.deploy.performance.estimate_performance import estimate_performance

__all__ = [
    "QUANTIFIERS",
    "AdaptationContext",
    "AdaptationPolicy",
    "AdaptationReport",
    "AffineCalibration",
    "Argmax",
    "AssumptionTest",
    "BayesRule",
    "ChangePoint",
    "CutOffs",
    "DecisionRule",
    "ExpectedGain",
    "ExpectedProbabilityGain",
    "FittedQuantifier",
    "HeadOutput",
    "LabeledLogits",
    "OptimisedMetric",
    "PerformanceEstimate",
    "PostProcessingHead",
    "PrevalenceEstimate",
    "Quantifier",
    "Reason",
    "ShiftEvidence",
    "ShiftTest",
    "TargetValue",
    "WindowSummary",
    "adapt",
    "bayes_decisions",
    "estimate_performance",
    "fit_affine",
    "fit_head",
    "quantifier",
]


def __getattr__(name: str) -> Any:
    # On first use: a service never needs it, and starts earlier without the metric pool.
    if name == "estimate_performance":
        from lifelong_core.deploy.performance.estimate_performance import estimate_performance

        return estimate_performance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
