"""Figures of labelled predictions: probabilities of the heads that answered, and the metric of a decision rule."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as oracle

from lifelong_core.decision_rules.rules import DecisionRule, needs_cut_off
from lifelong_core.deploy import BayesRule, OptimisedMetric, PostProcessingHead, TargetValue
from lifelong_core.entities.performance import RealisedRuleMetric
from lifelong_core.store import LabelledPredictions
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_core.store.performance.statements import describe_comparison, describe_warnings
from lifelong_core.values.arrays import Integers
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.realised.answered_predictions import compute_answers
from lifelong_monitor.realised.rule_metric import ENOUGH_CASES, realised_rule_metric
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, draw
from tests.unit.performance_samples import comparison

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
NAMES = ("benign", "unclear", "malignant")


def labelled(labels: Integers, decisions: Integers, **more: Any) -> LabelledPredictions:
    return LabelledPredictions(
        ids=tuple(first_id_at(MONDAY + timedelta(milliseconds=index)) for index in range(labels.size)),
        labels=labels,
        decisions=decisions,
        head_versions=np.full(labels.size, 7),
        logits=np.zeros((labels.size, 3), dtype=np.float32),
        **more,
    )


def drawn(size: int = 400) -> LabelledPredictions:
    rng = np.random.default_rng(5)
    labels = rng.integers(3, size=size)
    return labelled(labels, np.where(rng.random(size) < 0.7, labels, rng.integers(3, size=size)))


def head(rule: DecisionRule, names: tuple[str, ...] = NAMES) -> PostProcessingHead:
    size = len(names)
    cut_off = 0.4 if needs_cut_off(rule) else None
    shares = np.full(size, 1 / size)
    return PostProcessingHead(1.0, np.zeros(size), 1 - np.eye(size), shares, names, {}, rule, cut_off)


def realised(rule: DecisionRule, found: LabelledPredictions, **more: Any) -> RealisedRuleMetric | None:
    return realised_rule_metric(found, head(rule), 7, **({"error_rates": None, "confidence": 0.95} | more))


@pytest.mark.parametrize(
    ("metric", "beta", "positive"),
    [
        ("TPR", 1, 2),
        ("TPR", 1, 0),
        ("TNR", 1, 2),
        ("PPV", 1, 2),
        ("NPV", 1, 2),
        ("PPR", 1, 2),
        ("F_beta", 1, 2),
        ("F_beta", 2, 0),
    ],
)
def test_the_value_is_that_of_the_class_against_the_rest(metric: Any, beta: int, positive: int) -> None:
    found = drawn()
    true, decided = found.labels == positive, found.decisions == positive
    expected = {
        "TPR": oracle.recall_score(true, decided),
        "TNR": oracle.recall_score(~true, ~decided),
        "PPV": oracle.precision_score(true, decided),
        "NPV": oracle.precision_score(~true, ~decided),
        "PPR": decided.mean(),
        "F_beta": oracle.fbeta_score(true, decided, beta=beta),
    }[metric]
    rule: DecisionRule = (
        OptimisedMetric(metric, beta, positive) if metric == "F_beta" else TargetValue(metric, 0.8, positive)
    )
    made = realised(rule, found)
    assert made.value.value == pytest.approx(expected)
    assert made.value.low < expected < made.value.high
    assert (made.metric, made.class_name, made.samples, made.head_version) == (
        metric,
        NAMES[positive],
        400,
        7,
    )
    assert made.target == (None if metric == "F_beta" else 0.8)


def test_mcc_is_of_both_classes() -> None:
    both = drawn()
    rows = np.flatnonzero((both.labels < 2) & (both.decisions < 2))
    found = both.select(rows)
    made = realised_rule_metric(
        found, head(OptimisedMetric("MCC"), NAMES[:2]), 7, error_rates=None, confidence=0.95
    )
    assert made.value.value == pytest.approx(oracle.matthews_corrcoef(found.labels, found.decisions))
    assert made.class_name == ""


@pytest.mark.parametrize(("metric", "short"), [("TPR", "labels"), ("PPV", "decisions")])
def test_few_cases_in_the_denominator_say_nothing(metric: Any, short: str) -> None:
    many = np.repeat([0, 2], 200)
    for cases in (ENOUGH_CASES - 1, ENOUGH_CASES):
        few = np.repeat([0, 2], (400 - cases, cases))
        found = labelled(few, many) if short == "labels" else labelled(many, few)
        assert (realised(TargetValue(metric, 0.8, 2), found) is None) == (cases < ENOUGH_CASES)


@pytest.mark.parametrize("rule", [BayesRule(), OptimisedMetric("BA")])
def test_rules_without_such_a_metric_have_no_value(rule: DecisionRule) -> None:
    assert realised(rule, drawn()) is None


def test_labelling_probabilities_weigh_and_wrong_labels_and_groups_widen_the_interval() -> None:
    found, rule = drawn(), TargetValue("TPR", 0.8, 2)
    is_right = found.decisions == found.labels
    weighed = labelled(found.labels, found.decisions, propensities=np.where(is_right, 0.5, 0.1))
    made, plain = realised(rule, weighed), realised(rule, found)
    own = found.labels == 2
    assert made.value.value == pytest.approx(
        np.average(is_right[own], weights=np.where(is_right, 2, 10)[own])
    )
    unsure = realised(rule, found, error_rates=[0.0, 0.1, 0.1])
    grouped = realised(rule, labelled(found.labels, found.decisions, groups=np.arange(400) // 20))
    for other in (unsure, grouped):
        assert other.value.high - other.value.low > plain.value.high - plain.value.low


def test_the_comparison_says_what_the_rule_reached_and_warns_where_it_misses() -> None:
    made = realised(TargetValue("TPR", 0.99, 2), drawn())
    assert made.is_missed
    performance = comparison()
    missed = replace(performance, rule_metric=made)
    described = describe_comparison(missed)
    assert described[-1].startswith("Head 7: sensitivity of malignant is 0.789 (0.710 to 0.851)")
    assert described[-1].endswith(
        "on 400 labelled predictions. Its decision rule: sensitivity of malignant at least 0.99, then the best"
        " specificity."
    )
    assert any("By its labels, head 7 misses the target" in text for text in describe_warnings(missed))
    assert not any("misses the target" in text for text in describe_warnings(performance))
    assert RealisedRuleMetric.from_document(made.to_document()) == made


HEADS = {
    1: PostProcessingHead(1.0, [0.0, 0.0, 0.0], COSTS, BALANCED, CLASS_NAMES),
    2: PostProcessingHead(0.5, [1.0, 0.0, 0.0], COSTS, BALANCED, CLASS_NAMES),
    3: PostProcessingHead(1.0, [0.0, 0.0], [[0, 1], [1, 0]], [0.5, 0.5], ("no", "yes")),
}


def head_of(version: int) -> PostProcessingHead:
    if version == 4:
        raise DamagedHeadError("head 4 is damaged.")
    if version not in HEADS:
        raise NotFoundError(f"there is no head {version}.")
    return HEADS[version]


def test_each_prediction_gets_the_probabilities_of_the_head_that_answered_it() -> None:
    logits = draw(BALANCED, 6, seed=1).logits
    versions = np.array([2, 1, 1, 2, 2, 1])
    found = compute_answers(logits, versions, head_of, classes=3)
    alone = [
        HEADS[version].apply(row[np.newaxis]).probabilities[0]
        for row, version in zip(logits, versions.tolist(), strict=True)
    ]
    assert found.probabilities.tolist() == np.array(alone).tolist()
    assert found.is_known.all()
    assert found.unscored == ()


def test_what_cannot_be_computed_again_is_counted_by_reason() -> None:
    logits = draw(BALANCED, 12, seed=1).logits.copy()
    logits[0, 1], logits[5, 0] = np.nan, np.inf
    found = compute_answers(logits, np.array([1, 1, 3, 4, 4, 4, 5, 5, 5, 2, 2, 2]), head_of, classes=3)
    assert np.flatnonzero(found.is_known).tolist() == [1, 9, 10, 11]
    assert found.probabilities.tolist() == [
        *HEADS[1].apply(logits[1:2]).probabilities.tolist(),
        *HEADS[2].apply(logits[9:]).probabilities.tolist(),
    ]
    assert {some.reason.partition(": ")[2]: some.samples for some in found.unscored} == {
        "their logits are not finite": 2,
        "head 3 is for 2 classes, not 3": 1,
        "head 4 is damaged.": 2,
        "there is no head 5.": 3,
    }
