"""What a head says of the metric of its rule, against the metric in a large sample of its population."""

from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.decision_rules.rules import DecisionRule
from lifelong_core.deploy import BayesRule, LabeledLogits, OptimisedMetric, TargetValue, fit_head
from lifelong_core.deploy.criterion.expected_criterion import (
    KEY,
    describe_expectation,
    describe_head_rule,
    expectation_of,
    with_expectation,
)

NAMES = ("benign", "malignant")
COSTS = 1 - np.eye(2)


def draw(counts: tuple[int, int], seed: int) -> LabeledLogits:
    labels = np.repeat([0, 1], counts)
    rng = np.random.default_rng(seed)
    return LabeledLogits(
        (2 * np.eye(2)[labels] + rng.normal(size=(labels.size, 2))).astype(np.float32), labels
    )


CALIBRATION = draw((600, 600), 0)


def fitted(rule: DecisionRule, prevalence: tuple[float, float] = (0.9, 0.1)):
    return fit_head(CALIBRATION, COSTS, target_prevalence=prevalence, class_names=NAMES, decision_rule=rule)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (TargetValue("TPR", 0.9), "sensitivity of malignant 0."),
        (TargetValue("TNR", 0.8), "specificity of malignant 0."),
        (TargetValue("PPV", 0.7), "precision of malignant 0."),
        (TargetValue("NPV", 0.98), "negative predictive value of malignant 0."),
        (TargetValue("PPR", 0.2), "share of positive decisions of malignant 0."),
    ],
)
def test_the_interval_holds_the_metric_of_the_population(rule: TargetValue, words: str):
    head = with_expectation(fitted(rule), CALIBRATION)
    assert head.digest == fitted(rule).digest
    found = expectation_of(head)
    assert found is not None
    population = draw((90_000, 10_000), 1)
    decided, true = head.apply(population.logits).decisions == 1, population.labels == 1
    metric = {
        "TPR": (decided & true).sum() / true.sum(),
        "TNR": (~decided & ~true).sum() / (~true).sum(),
        "PPV": (decided & true).sum() / decided.sum(),
        "NPV": (~decided & ~true).sum() / (~decided).sum(),
        "PPR": decided.mean(),
    }[rule.metric]
    assert found.low <= metric <= found.high
    text = describe_expectation(head) or ""
    assert text.startswith(words)
    interval = f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
    assert f" {interval} expected at prevalence 0.1" in text


def test_optimised_metrics_are_named():
    for rule, words in (
        (OptimisedMetric("F_beta", 2.0), "F2 score of malignant 0."),
        (OptimisedMetric("MCC"), "MCC 0."),
    ):
        assert (describe_expectation(with_expectation(fitted(rule), CALIBRATION)) or "").startswith(words)


def test_too_few_cases_are_said_with_the_number_that_would_do():
    few = draw((300, 30), 2)
    rule = TargetValue("TPR", 0.9)
    head = with_expectation(fit_head(few, COSTS, class_names=NAMES, decision_rule=rule), few)
    found = expectation_of(head)
    assert found is not None
    assert (found.cases, found.needed_cases is not None) == (30, True)
    assert f"{found.needed_cases} calibration cases of malignant" in (describe_expectation(head) or "")
    assert "(there are 30)" in (describe_expectation(head) or "")


def test_rules_without_a_searched_cut_off_expect_nothing():
    head = fitted(BayesRule())
    assert with_expectation(head, CALIBRATION) is head
    assert describe_expectation(head) is None
    assert describe_head_rule(head) == "least expected cost"


@pytest.mark.parametrize(
    "given", ["words", {}, {"metric": "TPR"}, {"schema_version": 1, "value": "high"}, None]
)
def test_an_unreadable_expectation_is_none(given: object):
    head = with_expectation(fitted(TargetValue("TPR", 0.9)), CALIBRATION)
    document = dict(head.provenance[KEY])
    for forged in (
        given,
        {**document, "low": "?"},
        {**document, "metric": "PPV"},
        {**document, "cases": None},
        {**document, "value": 10**400},
    ):
        wrong = replace(head, provenance={KEY: forged})
        assert expectation_of(wrong) is None
        assert describe_expectation(wrong) is None
