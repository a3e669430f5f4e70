"""Environment-learning loop: quantify the prevalence, recalibrate, decide (thesis chapter 6)."""

from lifelong_core.deploy.calibration import AffineCalibration, fit_affine
from lifelong_core.deploy.decision import bayes_decisions
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead, fit_head
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.quantification import (
    QUANTIFIERS,
    FittedQuantifier,
    PrevalenceEstimate,
    Quantifier,
    quantifier,
)

__all__ = [
    "QUANTIFIERS",
    "AffineCalibration",
    "FittedQuantifier",
    "HeadOutput",
    "LabeledLogits",
    "PostProcessingHead",
    "PrevalenceEstimate",
    "Quantifier",
    "bayes_decisions",
    "fit_affine",
    "fit_head",
    "quantifier",
]
