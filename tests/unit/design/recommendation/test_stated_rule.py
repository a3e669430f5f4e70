"""Answers about the decision rule become the rule of a task and of a validation, or a sentence says why not."""

from typing import Any

import numpy as np
import pytest

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import Argmax, BayesRule, CutOffs, OptimisedMetric, PostProcessingHead, TargetValue
from lifelong_core.design import ProblemFingerprint
from lifelong_core.design.recommendation.document import UnusedAnswer
from lifelong_core.design.recommendation.stated_rule import recommended_rule, stated_rule
from tests.unit.store.design_samples import (
    RISK_THRESHOLD,
    SCREENING,
    SENSITIVITY,
    binary_recommendation,
    recommendation,
    recommendation_without_costs,
)

TARGET = {"decision_rule": "target_value", "target_metric": "PPV", "target_value": 0.8}
F_SCORE = {"decision_rule": "optimization", "optimised_metric": "F_beta"}
RISK = {
    "decision_rule": "cost_benefit",
    "threshold_perspective": "risk_threshold",
    "risk_threshold": 0.1,
}


def fingerprint(classes: int = 2, **answers: Any) -> ProblemFingerprint:
    return ProblemFingerprint(number_of_classes=classes, **answers)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (fingerprint(decision_rule="argmax"), Argmax()),
        (fingerprint(8, decision_rule="argmax"), Argmax()),
        (fingerprint(decision_rule="cost_benefit", costs=((0, 1), (50, 0))), BayesRule()),
        (fingerprint(8, decision_rule="cost_benefit"), BayesRule()),
        (fingerprint(**RISK), CutOffs(0.1)),
        (fingerprint(**RISK, target_class=1), CutOffs(0.1)),
        (fingerprint(**RISK, target_class=0), CutOffs((0.1, 0.9))),
        (fingerprint(**{**RISK, "threshold_perspective": "explicit_costs"}), BayesRule()),
        (fingerprint(**TARGET), TargetValue("PPV", 0.8, 1)),
        (fingerprint(**TARGET, target_class=0), TargetValue("PPV", 0.8, 0)),
        (fingerprint(8, **TARGET, target_class=5), TargetValue("PPV", 0.8, 5)),
        (fingerprint(**F_SCORE), OptimisedMetric("F_beta", 1.0, 1)),
        (fingerprint(**F_SCORE, worse_error="neither"), OptimisedMetric("F_beta", 1.0, 1)),
        (fingerprint(**F_SCORE, worse_error="missed_case"), OptimisedMetric("F_beta", 2.0, 1)),
        (fingerprint(8, **F_SCORE, worse_error="false_alarm", target_class=3), OptimisedMetric("F_beta", 0.5, 3)),
        (fingerprint(decision_rule="optimization", optimised_metric="MCC"), OptimisedMetric("MCC")),
        (fingerprint(8, decision_rule="optimization", optimised_metric="BA"), OptimisedMetric("BA")),
        (fingerprint(8, decision_rule="optimization", optimised_metric="AC"), OptimisedMetric("AC")),
        (fingerprint(decision_rule="optimization", optimised_metric="EC"), OptimisedMetric("EC")),
    ],
)  # fmt: skip
def test_each_answer_gives_its_rule(asked: ProblemFingerprint, rule: Any):
    assert stated_rule(asked).rule == rule
    assert stated_rule(asked).reason is None


@pytest.mark.parametrize(("classes", "shape"), [(None, (2, 2)), (3, (3, 3))])
def test_expected_cost_without_stated_costs_counts_errors_alike(classes: int | None, shape: tuple[int, int]):
    asked = ProblemFingerprint(number_of_classes=classes, decision_rule="optimization", optimised_metric="EC")
    assert np.shape(stated_rule(asked).costs) == shape


@pytest.mark.parametrize("answers", [{}, {"decision_rule": "none"}])
def test_answers_without_a_rule_leave_the_tasks(answers: dict[str, Any]):
    found = stated_rule(fingerprint(**answers))
    assert (found.rule, found.reason) == (None, None)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (fingerprint(decision_rule="target_value"), "target metric and its value are not stated"),
        (fingerprint(**{**TARGET, "target_value": 1.0}), "target of 1 leaves no cut-off to choose"),
        (fingerprint(**{**TARGET, "target_value": 1e-9}), "expected a number from 1e-06 to 1 - 1e-06"),
        (fingerprint(**{**RISK, "risk_threshold": 1e-9}), "expected a number from 1e-06 to 1 - 1e-06"),
        (fingerprint(8, **TARGET), "the class of the target is not stated"),
        (fingerprint(2, **TARGET, target_class=5), "there is no class 5, the task has 2"),
        (fingerprint(decision_rule="optimization"), "metric to optimise is not stated"),
        (fingerprint(decision_rule="optimization", optimised_metric="LR+"), "it can for F_beta, BA, MCC, AC and EC"),
        (fingerprint(8, decision_rule="optimization", optimised_metric="MCC"), "MCC are known for two classes only"),
        (fingerprint(8, **F_SCORE), "class of the F score is not stated"),
        (fingerprint(8, **RISK, target_class=2), "a risk threshold decides between two classes only"),
    ],
)  # fmt: skip
def test_answers_that_no_head_executes_give_a_reason(asked: ProblemFingerprint, reason: str):
    found = stated_rule(asked)
    assert found.rule is None
    assert found.reason is not None
    assert reason in found.reason
    assert found.reason.endswith(".")


@pytest.mark.parametrize(("target", "threshold"), [(0, 0.2), (1, 0.2), (0, 0.7), (1, 0.7)])
def test_a_risk_threshold_decides_the_class_of_interest_from_there_on(target: int, threshold: float):
    """Thesis Remark 2.58, for either class."""
    asked = fingerprint(**{**RISK, "risk_threshold": threshold}, target_class=target)
    rule = stated_rule(asked).rule
    assert isinstance(rule, CutOffs)
    head = PostProcessingHead(1.0, [0, 0], [[0, 1], [1, 0]], [0.5, 0.5], ("no", "yes"), decision_rule=rule)
    output = head.apply(np.random.default_rng(0).normal(size=(500, 2)))
    assert ((output.decisions == target) == (output.probabilities[:, target] >= threshold)).all()
    assert 0 < (output.decisions == target).mean() < 1


def test_unused_answers_count_as_not_given():
    decided = recommendation_without_costs()
    assert recommended_rule(decided).rule == Argmax()
    unused = (*decided.unused, UnusedAnswer(item="decision_rule", value="argmax"))
    assert recommended_rule(decided.model_copy(update={"unused": unused})).rule is None
    assert recommended_rule(recommendation(decision_rule="none")).rule is None


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (SENSITIVITY, TargetValue("TPR", 0.9, 1)),
        (SCREENING, BayesRule()),
        (RISK_THRESHOLD, CutOffs(0.1)),
        ({**F_SCORE, "target_class": 0, "unequal_severity": False}, OptimisedMetric("F_beta", 1.0, 0)),
    ],
)
def test_a_recommendation_asks_for_the_rule_of_its_answers(asked: dict[str, Any], rule: Any):
    assert recommended_rule(binary_recommendation(asked)).rule == rule


def test_the_beta_of_the_recommended_metric_counts():
    answers = {
        "number_of_classes": 2,
        "decision_rule": "optimization",
        "optimised_metric": "F_beta",
        "target_class": 0,
        "worse_error": "missed_case",
    }
    made = recommendation_without_costs()
    made = made.model_copy(update={"fingerprint": ProblemFingerprint(**answers)})
    assert recommended_rule(made).rule == OptimisedMetric("F_beta", 2.0, 0)
    step = made.steps[0]
    metric = step.metrics[0].model_copy(update={"metric": "F_beta", "parameters": {"beta": 0.5}})
    made = made.model_copy(update={"steps": (step.model_copy(update={"metrics": (metric,)}),)})
    assert recommended_rule(made).rule == OptimisedMetric("F_beta", 0.5, 0)


@pytest.mark.parametrize(
    ("asked", "phrase"),
    [
        (fingerprint(decision_rule="argmax"), "highest probability"),
        (fingerprint(decision_rule="cost_benefit", costs=((0, 1), (50, 0))), "least expected cost"),
        (fingerprint(**RISK), "malignant from a probability of 0.1 on"),
        (fingerprint(**RISK, target_class=0), "benign from a probability of 0.1 on"),
        (fingerprint(**TARGET), "precision of malignant at least 0.8, then the best sensitivity"),
        (
            fingerprint(**{**TARGET, "target_metric": "TPR", "target_class": 0}),
            "sensitivity of benign at least 0.8, then the best specificity",
        ),
        (fingerprint(**F_SCORE, worse_error="missed_case"), "best F2 score of malignant"),
        (fingerprint(decision_rule="optimization", optimised_metric="BA"), "best balanced accuracy"),
        (fingerprint(3, decision_rule="optimization", optimised_metric="BA"), "best balanced accuracy"),
        (fingerprint(3, **F_SCORE, target_class=2), "best F1 score of else"),
    ],
)
def test_the_rule_of_the_answers_has_a_phrase(asked: ProblemFingerprint, phrase: str):
    rule = stated_rule(asked).rule
    assert rule is not None
    assert describe_rule(rule, ("benign", "malignant", "else")[: asked.number_of_classes]) == phrase


def test_costs_are_those_that_are_stated_unless_all_errors_are_alike():
    stated, alike = ((0.0, 1.0), (50.0, 0.0)), ((0.0, 1.0), (1.0, 0.0))
    best = {"decision_rule": "optimization", "optimised_metric": "EC"}
    assert stated_rule(fingerprint(decision_rule="cost_benefit", costs=stated)).costs == stated
    assert stated_rule(fingerprint(decision_rule="cost_benefit", unequal_severity=False)).costs == alike
    assert stated_rule(fingerprint(decision_rule="cost_benefit", unequal_severity=True)).costs is None
    assert stated_rule(fingerprint(**best, costs=stated)).costs == stated
    assert stated_rule(fingerprint(**best)).costs == alike
    assert stated_rule(fingerprint(decision_rule="argmax", costs=stated)).costs is None
