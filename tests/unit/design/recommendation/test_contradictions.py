import itertools

import pytest

from lifelong_core.design import ProblemFingerprint, contradictions, recommend
from lifelong_core.values.errors import InvalidInputError

CASES = {
    "target_value_with_many_classes": {"FP2.6": "target_value", "number_of_classes": 3},
    "mcc_with_many_classes": {"FP2.6": "optimization", "optimised_metric": "MCC", "number_of_classes": 3},
    "likelihood_ratio_optimised": {"FP2.6": "optimization", "optimised_metric": "LR+"},
    "top_label_without_argmax": {"FP2.6": "cost_benefit", "top_label_only": True},
    "rule_without_scores": {"FP5.1": False, "FP2.6": "cost_benefit"},
    "calibration_without_scores": {"FP5.1": False, "FP2.7.1": True},
    "comparison_without_assessment": {"FP2.7.1": False, "FP2.7.2": "U2"},
    "interpretation_without_assessment": {"FP2.7.1": False, "FP2.7.3": "joint"},
    "assessment_without_purpose": {"FP2.7.1": True, "FP2.7.2": "none", "FP2.7.3": "none"},
    "compensation_without_imbalance": {"FP4.1": False, "FP2.5.5": True},
    "costs_without_costs": {
        "number_of_classes": 2,
        "FP2.6": "cost_benefit",
        "threshold_perspective": "explicit_costs",
        "FP2.5.2": True,
        "FP2.5.4": False,
    },
    "costs_of_other_classes": {"number_of_classes": 3, "costs": [[0, 1], [1, 0]]},
    "class_weights_of_other_classes": {"number_of_classes": 3, "class_weights": [1, 2]},
    "target_prevalences_of_other_classes": {"number_of_classes": 3, "target_prevalences": [0.5, 0.5]},
    "target_class_of_other_classes": {"number_of_classes": 2, "target_class": 2},
    "costs_against_availability": {"FP2.5.4": False, "costs": [[0, 1], [5, 0]]},
    "costs_against_severity": {"FP2.5.2": True, "costs": [[0, 1], [1, 0]]},
    "weights_against_interest": {"FP2.5.1": True, "class_weights": [2, 2]},
    "threshold_against_severity": {"FP2.6": "cost_benefit", "FP2.5.2": False, "risk_threshold": 0.1},
    "threshold_against_costs": {
        "number_of_classes": 2,
        "FP2.6": "cost_benefit",
        "target_class": 1,
        "costs": [[0, 1], [9, 0]],
        "risk_threshold": 0.2,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_found_explained_and_can_be_resolved(name):
    fingerprint = ProblemFingerprint.from_document(CASES[name])
    found = contradictions(fingerprint)
    assert [item.id for item in found] == [name]
    assert set(found[0].answers) <= set(fingerprint.answered_fields())
    assert found[0].explanation.endswith(".")
    assert found[0].resolutions
    for resolution in found[0].resolutions:
        assert contradictions(fingerprint.with_answers(resolution.answers)) == ()


@pytest.mark.parametrize("name", CASES)
def test_it_takes_all_of_its_answers(name):
    """No part of a contradiction is one: a positive control for each."""
    for item in CASES[name]:
        fewer = {other: value for other, value in CASES[name].items() if other != item}
        assert contradictions(ProblemFingerprint.from_document(fewer)) == (), item


def test_every_contradiction_of_the_document_has_a_case(method):
    assert {rule.id for rule in method.contradictions} <= set(CASES)


@pytest.mark.parametrize(
    "answers",
    [
        {"FP2.5.2": False, "costs": [[0, 2], [2, 0]]},
        {"FP2.5.2": False, "costs": [[0, 1, 0.3], [1, 0, 0.3]]},  # abstaining is no error
        {"FP2.5.2": False, "costs": [[-1, 0], [0, -1]]},  # a correct decision may pay
        {"FP2.5.2": True, "costs": [[0, 1], [5, 0]]},
        {"FP2.5.1": False, "class_weights": [1, 1, 1]},
        {"FP2.6": "cost_benefit", "FP2.5.2": False, "risk_threshold": 0.5},
        {
            "FP2.6": "cost_benefit",
            "number_of_classes": 2,
            "target_class": 1,
            "costs": [[0, 1], [9, 0]],
            "risk_threshold": 0.1,
        },
        {
            "FP2.6": "cost_benefit",
            "number_of_classes": 2,
            "target_class": 0,
            "costs": [[0, 9], [1, 0]],
            "risk_threshold": 0.1,
        },
        {"number_of_classes": 2, "costs": [[0, 1, 0.2], [1, 0, 0.2]]},
        {"number_of_classes": 2, "target_class": 1},
        # an error that costs nothing sets no threshold
        {
            "FP2.6": "cost_benefit",
            "number_of_classes": 2,
            "target_class": 1,
            "costs": [[0, 0], [1, 0]],
            "risk_threshold": 0.4,
        },
        # nor do costs of another form, which another contradiction names once the number of classes is known
        {"FP2.5.2": True, "costs": [[0, 1, 2, 3], [0, 1, 2, 3]]},
        {
            "FP2.6": "cost_benefit",
            "FP2.5.2": False,
            "threshold_perspective": "explicit_costs",
            "risk_threshold": 0.1,
        },
    ],
)
def test_answers_that_go_together_are_left_alone(answers):
    assert contradictions(ProblemFingerprint.from_document(answers)) == ()


@pytest.mark.parametrize("rule", ["target_value", "optimization", "cost_benefit", "none"])
def test_no_rule_that_needs_scores_goes_without(rule):
    assert contradictions(ProblemFingerprint(class_scores_available=False, decision_rule=rule))


def test_recommending_explains_it_rather_than_guess():
    fingerprint = ProblemFingerprint.from_document(CASES["target_value_with_many_classes"])
    with pytest.raises(InvalidInputError, match="one cut-off on one score") as caught:
        recommend(fingerprint)
    assert caught.value.field == "decision_rule"
    assert "Choose another decision rule" in caught.value.hint


def test_several_are_all_named():
    both = [CASES["weights_against_interest"], CASES["calibration_without_scores"]]
    fingerprint = ProblemFingerprint.from_document(
        dict(itertools.chain.from_iterable(case.items() for case in both))
    )
    assert len(contradictions(fingerprint)) == 2
