"""Validations and comparisons of real logits, small enough to be made in a test."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lifelong_core.design import ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.compare import compare
from lifelong_core.design.validation.comparison import ModelComparison
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.validate import validate
from lifelong_core.design.validation.values.samples import ModelOutputs
from lifelong_core.values.arrays import Floats, Integers
from tests import tools
from tests.unit.design.interviews import ALL_ALIKE

OBJECTS = ("aeroplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SCREENING: dict[str, Any] = {
    "class_scores_available": True,
    "decision_rule": "cost_benefit",
    "target_class": 1,
    "unequal_severity": True,
    "costs_available": True,
    "threshold_perspective": "risk_threshold",
    "risk_threshold": 0.1,
    "threshold_range": True,
    "costs": ((0.0, 1.0), (9.0, 0.0)),
    "unequal_interest": False,
    "importance_mismatch": False,
    "prevalences_representative": False,
    "class_contribution": "target_prevalences",
    "target_prevalences_known": True,
    "target_prevalences": (0.95, 0.05),
    "class_imbalance": True,
    "imbalance_compensation": False,
    "predictive_values": "important",
    "calibration_assessment": True,
    "calibration_comparison": "none",
    "output_interpretation": "calibration_only",
    "rare_events": False,
    "top_label_only": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}


def logits(file: str, split: str) -> tuple[Integers, Floats]:
    """Labels and logits of a split of the shared data."""
    with np.load(tools.real_logits() / f"{file}.npz") as arrays:
        return arrays[f"{split}_labels"].astype(np.int64), arrays[f"{split}_logits"].astype(np.float64)


def advised(answers: dict[str, Any], classes: int) -> Recommendation:
    return recommend(ProblemFingerprint(number_of_classes=classes, **answers))


@cache
def two_classes() -> ValidationResult:
    """Two classes with costs, calibration, a decision curve, subgroups and a stated prevalence."""
    labels, values = logits("hyperkvasir_therapeutic_interventions", "development_test")
    scanner = ["CF-190" if index % 3 else "EC-38" for index in range(labels.size)]
    scanner[:6] = ["unknown"] * 6
    return validate(
        advised(SCREENING, 2),
        labels,
        logits=values,
        metadata={"scanner": scanner},
        class_names=("dyed lifted polyp", "dyed resection margin"),
        thresholds=[
            AcceptanceThreshold(metric="NB@0.1", value=0.4),
            AcceptanceThreshold(metric="EC", value=0.01),
        ],
        name="resnet34",
        replicates=20,
    )


@cache
def patients() -> ValidationResult:
    """Two classes of patients in many subgroups with long names, at costs of 50 to 1 and a prevalence of 2 %."""
    labels, values = logits("hyperkvasir_therapeutic_interventions", "deployment")
    patient = np.arange(labels.size) // 3
    answers = {
        "costs": ((0.0, 1.0), (50.0, 0.0)),
        "risk_threshold": 0.02,
        "target_prevalences": (0.98, 0.02),
        "dependent_cases": True,
        "grouping_variable": "patient",
    }
    return validate(
        advised(SCREENING | answers, 2),
        labels,
        logits=values,
        groups=patient,
        metadata={
            "scanner": np.array(["Olympus CF-HQ190", "Olympus EC-38", "Fujinon"])[patient % 3],
            "site": np.array(["Bærum sykehus", "Oslo"])[patient // 20 % 2],
        },
        class_names=("dyed lifted polyp", "dyed resection margin"),
        thresholds=[AcceptanceThreshold(metric="EC", value=0.05)],
        name="resnet34",
        replicates=20,
    )


@cache
def ten_classes() -> ValidationResult:
    """Ten classes, decided by the highest score."""
    labels, values = logits("cifar10_resnet50", "deployment")
    return validate(
        advised(ALL_ALIKE, 10), labels, logits=values, class_names=OBJECTS, name="resnet50", replicates=20
    )


@cache
def hundred_classes() -> ValidationResult:
    """More classes than can be looked at."""
    labels, values = logits("cifar100_resnet20", "deployment")
    return validate(
        advised(ALL_ALIKE, 100), labels[:1000], logits=values[:1000], name="resnet20", replicates=10
    )


def absent_class() -> ValidationResult:
    """No sample of the third class, and never a decision for the second."""
    return validate(
        advised(ALL_ALIKE, 3), [0, 0, 1, 1, 0, 1], probabilities=np.eye(3)[[0, 0, 0, 2, 0, 2]], replicates=10
    )


def decisions_only() -> ValidationResult:
    """Decisions without any score, and a choice that is still open."""
    answers = {
        "class_scores_available": False,
        "unequal_severity": False,
        "unequal_interest": False,
        "prevalences_representative": True,
        "class_imbalance": True,
        "imbalance_compensation": True,
        "predictive_values": "unclear",
        "dependent_cases": False,
        "invalid_outputs": False,
    }
    return validate(advised(answers, 2), [0, 1] * 20, decisions=[0, 1, 1, 1] * 10, replicates=10)


@cache
def three_models(names: Sequence[str] = ("as trained", "noisy", "very noisy")) -> ModelComparison:
    """A model, the same with noise, and the same with more of it."""
    labels, values = logits("hyperkvasir_therapeutic_interventions", "development_test")
    noise = np.random.default_rng(0).normal(size=values.shape)
    models = {
        name: ModelOutputs(logits=values + size * noise) for name, size in zip(names, (0, 2, 5), strict=True)
    }
    return compare(
        advised(SCREENING, 2),
        labels,
        models,
        thresholds=[AcceptanceThreshold(metric="NB@0.1", value=0.4)],
        replicates=20,
    )
