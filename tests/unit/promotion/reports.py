"""Promotion reports of drawn cases: three classes, patients, scanners."""

from typing import Any

import numpy as np

from lifelong_core.deploy import LabeledLogits, fit_head
from lifelong_core.design import ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.promotion import ComparedModel, HeldOutCases, Population, PromotionReport, promotion_report
from lifelong_core.promotion.document import FingerprintDistance, RuntimeCost
from lifelong_core.values.arrays import Floats, Integers

CLASSES = ("healthy", "benign", "malignant")
COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
RECOMMENDED: Recommendation = recommend(
    ProblemFingerprint(
        number_of_classes=3,
        class_scores_available=True,
        decision_rule="cost_benefit",
        unequal_severity=True,
        costs_available=True,
        costs=tuple(map(tuple, COSTS.tolist())),
        unequal_interest=False,
        prevalences_representative=True,
        class_imbalance=False,
        predictive_values="unimportant",
        calibration_assessment=False,
        dependent_cases=True,
        grouping_variable="patient",
        invalid_outputs=False,
    )
)
"""EC with these costs, and AUROC of each class."""
THRESHOLDS = (
    AcceptanceThreshold(metric="EC", value=0.9),
    AcceptanceThreshold(metric="AUROC", value=0.7, class_index=2),
)
COST = RuntimeCost(
    graph_bytes=85_300_000,
    milliseconds=12.3,
    slowest_milliseconds=14.1,
    runs=30,
    machine="Linux x86_64, 2 processors",
)


def draw(seed: int, samples: int) -> tuple[Integers, Floats]:
    """Labels, and what makes each case hard, shape (N, 3)."""
    rng = np.random.default_rng(seed)
    return np.arange(samples) % 3, rng.normal(size=(samples, 3))


def logits(labels: Integers, hardness: Floats, *, strength: float, seed: int) -> Floats:
    """Logits of a model; another seed errs on other cases as well."""
    own = np.random.default_rng(seed).normal(size=hardness.shape)
    return strength * np.eye(3)[labels] + hardness + 0.5 * own


def model(
    reference: str, labels: Integers, hardness: Floats, *, strength: float, seed: int, **more: Any
) -> ComparedModel:
    """A model with the head fitted on a calibration set of its own."""
    held_back, noise = draw(1000 + seed, 300)
    calibration = LabeledLogits(
        logits(held_back, noise, strength=strength, seed=seed + 1).astype(np.float32), held_back
    )
    head = fit_head(calibration, COSTS, class_names=CLASSES)
    own = logits(labels, hardness, strength=strength, seed=seed)
    return ComparedModel(
        reference=reference, logits=own.astype(np.float32), head=head, calibration=calibration, **more
    )


def population(
    environment: str, prevalence: list[float], new: ComparedModel, current: ComparedModel
) -> Population:
    """An environment whose heads are fitted for its prevalence."""
    heads = [
        fit_head(one.calibration, COSTS, target_prevalence=prevalence, class_names=CLASSES)
        for one in (new, current)
        if one.calibration is not None
    ]
    return Population(
        environment=environment,
        prevalence=np.array(prevalence),
        new_head=heads[0],
        current_head=heads[1],
    )


def compared(
    samples: int = 240, *, strength: float = 2.6, before: float = 1.8
) -> tuple[ComparedModel, ComparedModel, HeldOutCases]:
    """A new model, the current one, and their cases."""
    labels, hardness = draw(0, samples)
    cases = HeldOutCases(
        labels=labels,
        groups=np.arange(samples) // 2,
        names=[f"{CLASSES[label]}/image_{row:04d}.png" for row, label in enumerate(labels)],
        metadata={"scanner": np.where(np.arange(samples) % 4 < 2, "A", "B")},
        origin="the test split of the training of dermatology@2",
    )
    new = model(
        "dermatology@2", labels, hardness, strength=strength, seed=5, cost=COST, trained_on="clinic 2026"
    )
    current = model(
        "dermatology@1", labels, hardness, strength=before, seed=7, cost=replace_cost(), trained_on=None
    )
    return new, current, cases


def replace_cost() -> RuntimeCost:
    return COST.model_copy(update={"graph_bytes": 44_700_000, "milliseconds": 6.1})


def report(*, strength: float = 2.6, before: float = 1.8, **more: Any) -> PromotionReport:
    """A report on drawn cases."""
    new, current, cases = compared(strength=strength, before=before)
    given: dict[str, Any] = {
        "recommendation": RECOMMENDED,
        "class_names": CLASSES,
        "costs": COSTS,
        "thresholds": THRESHOLDS,
        "populations": [population("clinic-north", [0.8, 0.15, 0.05], new, current)],
        "fingerprints": FingerprintDistance(method="JSD", distance=0.083),
        "replicates": 200,
    }
    return promotion_report("lesions", new, current, cases, **given | more)
