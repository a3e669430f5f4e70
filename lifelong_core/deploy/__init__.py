"""Environment-learning loop: quantify the prevalence, recalibrate, decide (thesis chapter 6)."""

from lifelong_core.deploy.adaptation import adapt
from lifelong_core.deploy.calibration import AffineCalibration, fit_affine
from lifelong_core.deploy.context import AdaptationContext
from lifelong_core.deploy.decision import bayes_decisions
from lifelong_core.deploy.gain import ExpectedGain
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
from lifelong_core.deploy.report import AdaptationReport, Reason
from lifelong_core.deploy.shift import ShiftTest

__all__ = [
    "QUANTIFIERS",
    "AdaptationContext",
    "AdaptationPolicy",
    "AdaptationReport",
    "AffineCalibration",
    "ExpectedGain",
    "FittedQuantifier",
    "HeadOutput",
    "LabeledLogits",
    "PostProcessingHead",
    "PrevalenceEstimate",
    "Quantifier",
    "Reason",
    "ShiftTest",
    "adapt",
    "bayes_decisions",
    "fit_affine",
    "fit_head",
    "quantifier",
]
