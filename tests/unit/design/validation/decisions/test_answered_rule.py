import numpy as np
import pytest

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import CutOffs, TargetValue
from lifelong_core.design import ProblemFingerprint
from lifelong_core.design.validation.decisions.answered_rule import answered_rule
from lifelong_core.store.design.decision_rules import stated_rule
from tests.unit.design.validations import recommending

NAMES = ("benign", "malignant", "else")
TARGET = {"decision_rule": "target_value", "target_metric": "PPV", "target_value": 0.8}
BEST = {"decision_rule": "optimization"}
COSTS = ((0.0, 1.0), (50.0, 0.0))


def found(**answers):
    return answered_rule(recommending("BA", **{"number_of_classes": 2, **answers}))


@pytest.mark.parametrize(
    ("answers", "kind", "phrase"),
    [
        ({"decision_rule": "argmax"}, "argmax", "highest probability"),
        ({"decision_rule": "cost_benefit", "costs": COSTS}, "least_cost", "least expected cost"),
        (
            {"decision_rule": "cost_benefit", "risk_threshold": 0.1},
            "risk_threshold",
            "malignant from a probability of 0.1 on",
        ),
        (TARGET, "target_value", "precision of malignant at least 0.8, then the best sensitivity"),
        (
            {**TARGET, "target_metric": "TPR", "target_class": 0},
            "target_value",
            "sensitivity of benign at least 0.8, then the best specificity",
        ),
        (
            {**BEST, "optimised_metric": "F_beta", "worse_error": "missed_case"},
            "optimised_metric",
            "best F2 score of malignant",
        ),
        ({**BEST, "optimised_metric": "BA"}, "optimised_metric", "best balanced accuracy"),
        (
            {**BEST, "optimised_metric": "BA", "number_of_classes": 3},
            "optimal_costs",
            "best balanced accuracy",
        ),
        (
            {**BEST, "optimised_metric": "F_beta", "number_of_classes": 3, "target_class": 2},
            "optimised_metric",
            "best F1 score of else",
        ),
    ],
)
def test_the_rule_of_the_answers_is_that_of_a_head(answers, kind, phrase):
    rule = found(**answers).rule
    assert rule is not None
    assert (rule.kind, rule.describe(NAMES)) == (kind, phrase)
    head_rule = stated_rule(ProblemFingerprint(**{"number_of_classes": 2, **answers})).rule
    assert head_rule is not None
    assert describe_rule(head_rule, NAMES[: answers.get("number_of_classes", 2)]) == phrase
    if isinstance(head_rule, TargetValue):
        assert (rule.metric, rule.value) == (head_rule.metric, head_rule.value)
        assert rule.positive_class == head_rule.positive_class
    if isinstance(head_rule, CutOffs):
        assert (rule.value,) == head_rule.thresholds


@pytest.mark.parametrize(
    "answers",
    [
        {"decision_rule": "target_value"},
        {**TARGET, "number_of_classes": 3},
        {**BEST},
        {**BEST, "optimised_metric": "LR+"},
        {**BEST, "optimised_metric": "MCC", "number_of_classes": 3},
        {**BEST, "optimised_metric": "F_beta", "number_of_classes": 3},
        {"decision_rule": "cost_benefit", "risk_threshold": 0.1, "number_of_classes": 3},
    ],
)
def test_a_rule_that_cannot_be_executed_has_a_reason_as_for_a_head(answers):
    stated = found(**answers)
    assert stated.rule is None
    assert stated.reason
    assert stated_rule(ProblemFingerprint(**{"number_of_classes": 2, **answers})).reason


def test_without_an_answer_there_is_neither_rule_nor_reason():
    for answer in (None, "none"):
        stated = found(decision_rule=answer)
        assert (stated.rule, stated.reason) == (None, None)


def test_costs_are_needed_unless_all_errors_are_alike():
    assert found(decision_rule="cost_benefit", unequal_severity=True).reason is not None
    alike = found(decision_rule="cost_benefit", unequal_severity=False).rule
    assert np.array(alike.costs).tolist() == [[0, 1], [1, 0]]


def test_an_unused_answer_counts_as_not_given():
    recommendation = recommending("BA", number_of_classes=2, **TARGET)
    item = {"item": "target_value", "reason": "not needed"}
    fields = type(recommendation).model_fields["unused"].annotation.__args__[0].model_fields
    unused = {**dict.fromkeys(fields, "x"), **item}
    unused = {name: value for name, value in unused.items() if name in fields}
    made = type(recommendation).model_fields["unused"].annotation.__args__[0].model_construct(**unused)
    assert answered_rule(recommendation.model_copy(update={"unused": (made,)})).rule is None
