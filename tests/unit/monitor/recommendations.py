"""A recommendation for the task of `population`."""

from lifelong_core.design import ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import Store
from tests.unit.monitor.population import COSTS

RECOMMENDED = recommend(
    ProblemFingerprint(
        number_of_classes=3,
        class_scores_available=True,
        decision_rule="argmax",
        unequal_severity=True,
        costs_available=True,
        costs=COSTS,
        unequal_interest=False,
        prevalences_representative=True,
        class_imbalance=False,
        predictive_values="unimportant",
        calibration_assessment=False,
        dependent_cases=False,
        invalid_outputs=False,
    )
)
"""EC with these costs, TPR of each class, AUROC of each class."""


def attach(store: Store, *thresholds: AcceptanceThreshold, what: Recommendation = RECOMMENDED) -> None:
    store.recommendations.attach("lesions", what, thresholds=thresholds, actor="tests")
