"""Prevalence estimation without labels, one module per family of methods."""

from lifelong_core.deploy.quantification.base import FittedQuantifier
from lifelong_core.deploy.quantification.estimate import PrevalenceEstimate
from lifelong_core.deploy.quantification.registry import QUANTIFIERS, Quantifier, quantifier
from lifelong_core.deploy.quantification.summary import WindowSummary

__all__ = [
    "QUANTIFIERS",
    "FittedQuantifier",
    "PrevalenceEstimate",
    "Quantifier",
    "WindowSummary",
    "quantifier",
]
