"""Deployment loop: estimate the prevalence, recalibrate, decide (thesis chapter 6).

The order is that of the imports: each package imports later ones only.

- `adaptation`: the cycle, from a window to keep, swap or refuse
- `performance`: how good the decisions are, without labels and with few
- `fitted_calibration`: a calibration set with its quantifier, and the references of the heads that were judged last
- `shift`: tests for a shift of the prevalence, change points
- `criterion`: what the metric of a decision rule will be in a population
- `calibration_acceptance`: is a calibration set good enough?
- `quantification`: prevalence of a window of unlabelled logits
- `label_shift`: has only the prevalence changed?
- `head_wording`: a head, and the difference between two, in plain words
- `head_fitting`: fits of heads, also held out
- `head`: probabilities, decisions and expected costs of new logits
- `calibration`: calibrated probabilities from labelled logits
- `labeled`, `labelled_set`, `paired_set`: labelled logits and their files
- `numerics`, `documents`, `checks`: numerical methods, reading of documents, checks of values
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
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead, bayes_decisions
from lifelong_core.deploy.head_fitting import fit_head
from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.deploy.quantification.registry import QUANTIFIERS, Quantifier, quantifier
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.deploy.shift.change_points import ChangePoint
from lifelong_core.deploy.shift.evidence import ShiftEvidence
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
