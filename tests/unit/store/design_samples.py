"""An interview of the design loop for the classes of `samples`, and its recommendation."""

from typing import Any

from lifelong_core.design import Recommendation
from lifelong_core.design.interview.interview import Interview, start_interview

STATED_COSTS = ((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (20.0, 8.0, 0.0))
"""Others than those of `samples`."""
WITH_ABSTENTION = ((0.0, 1.0, 2.0, 0.5), (1.0, 0.0, 1.0, 0.5), (20.0, 8.0, 0.0, 0.5))

_ANSWERS: dict[str, Any] = {
    "number_of_classes": 3,
    "class_scores_available": True,
    "decision_rule": "cost_benefit",
    "unequal_severity": True,
    "costs_available": True,
    "costs": STATED_COSTS,
    "unequal_interest": False,
    "prevalences_representative": False,
    "target_prevalences_known": False,
    "assumed_prevalences": "test_data",
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
_WITHOUT_COSTS: dict[str, Any] = {
    "decision_rule": "argmax",
    "unequal_severity": False,
    "costs_available": None,
    "costs": None,
    "class_contribution": "equal",
    "target_prevalences_known": None,
    "assumed_prevalences": None,
}


_BINARY: dict[str, Any] = {
    "number_of_classes": 2,
    "class_scores_available": True,
    "unequal_interest": False,
    "prevalences_representative": False,
    "class_contribution": "target_prevalences",
    "target_prevalences_known": True,
    "target_prevalences": (0.98, 0.02),
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
SENSITIVITY: dict[str, Any] = {
    "decision_rule": "target_value",
    "target_class": 1,
    "target_metric": "TPR",
    "target_value": 0.9,
    "unequal_severity": False,
}
"""a sensitivity of at least 0.9"""
SCREENING: dict[str, Any] = {
    "decision_rule": "cost_benefit",
    "unequal_severity": True,
    "costs_available": True,
    "threshold_perspective": "explicit_costs",
    "costs": ((0.0, 1.0), (50.0, 0.0)),
}
"""a missed case costs fifty times a false alarm"""
RISK_THRESHOLD: dict[str, Any] = {
    "decision_rule": "cost_benefit",
    "unequal_severity": True,
    "costs_available": False,
    "threshold_perspective": "risk_threshold",
    "risk_threshold": 0.1,
    "target_class": 1,
    "threshold_range": False,
}


def binary_recommendation(rule: dict[str, Any]) -> Recommendation:
    """For two classes whose second one is rare in use, with the answers about the rule."""
    return start_interview(answers={**_BINARY, **rule}).recommendation()


def interview(**answers: Any) -> Interview:
    return start_interview(answers={**_ANSWERS, **answers})


def recommendation(**answers: Any) -> Recommendation:
    """For the stated costs; its metrics are EC and AUROC."""
    return interview(**answers).recommendation()


def recommendation_without_costs(**answers: Any) -> Recommendation:
    """For equally bad errors; its metrics are BA, TPR and AUROC."""
    return recommendation(**{**_WITHOUT_COSTS, **answers})
