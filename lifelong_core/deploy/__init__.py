"""Environment-learning loop: quantify the prevalence, recalibrate, decide (thesis chapter 6)."""

from lifelong_core.deploy.adaptation import adapt
from lifelong_core.deploy.assumption import AssumptionTest
from lifelong_core.deploy.calibration import AffineCalibration, fit_affine
from lifelong_core.deploy.context import AdaptationContext
from lifelong_core.deploy.decision import bayes_decisions
from lifelong_core.deploy.evidence import ShiftEvidence
from lifelong_core.deploy.gain import ExpectedGain, ExpectedProbabilityGain
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead, fit_head
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.policy import AdaptationPolicy
from lifelong_core.deploy.quantification import (
    QUANTIFIERS,
    FittedQuantifier,
    PrevalenceEstimate,
    Quantifier,
    quantifier,
)
from lifelong_core.deploy.quantification.summary import WindowSummary
from lifelong_core.deploy.reasons import Reason
from lifelong_core.deploy.report import AdaptationReport
from lifelong_core.deploy.shift import ShiftTest
from lifelong_core.deploy.shift.change_points import ChangePoint

__all__ = [
    "QUANTIFIERS",
    "AdaptationContext",
    "AdaptationPolicy",
    "AdaptationReport",
    "AffineCalibration",
    "AssumptionTest",
    "ChangePoint",
    "ExpectedGain",
    "ExpectedProbabilityGain",
    "FittedQuantifier",
    "HeadOutput",
    "LabeledLogits",
    "PostProcessingHead",
    "PrevalenceEstimate",
    "Quantifier",
    "Reason",
    "ShiftEvidence",
    "ShiftTest",
    "WindowSummary",
    "adapt",
    "bayes_decisions",
    "fit_affine",
    "fit_head",
    "quantifier",
]
