"""Rules as values: what they refuse, their JSON documents, and heads that hold them."""

import json
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest

from lifelong_core.decision_rules.rules import (
    OPTIMISABLE_METRICS,
    TARGET_METRICS,
    Target,
    check_rule,
    has_own_metric,
    needs_cut_off,
    rule_document,
    rule_from_document,
)
from lifelong_core.deploy import (
    Argmax,
    BayesRule,
    CutOffs,
    LabeledLogits,
    OptimisedMetric,
    PostProcessingHead,
    TargetValue,
    fit_head,
)
from lifelong_core.values.errors import InvalidInputError

RULES = [
    BayesRule(),
    Argmax(),
    CutOffs(0.1),
    CutOffs([0.2, 0.7]),
    *(TargetValue(metric, 0.85, positive_class=0) for metric in TARGET_METRICS),
    *(OptimisedMetric(metric) for metric in OPTIMISABLE_METRICS),
    OptimisedMetric("F_beta", beta=2, positive_class=0),
]
OLD_HEAD = {
    "schema_version": 1,
    "temperature": 2.0,
    "bias": [0.0, 0.5],
    "costs": [[0.0, 1.0], [5.0, 0.0]],
    "assumed_prevalence": [0.75, 0.25],
    "class_names": ["benign", "malignant"],
    "provenance": {},
}
OLD_DIGEST = "054e35f895fe86ad7a1196d754e5ab40828188a2d38d6b817fe6d20a151561d8"


def head_of(rule: Any, **changes: Any) -> PostProcessingHead:
    cut_off = 0.25 if needs_cut_off(rule) else None
    values = {name: value for name, value in OLD_HEAD.items() if name != "schema_version"}
    return PostProcessingHead(**{**values, "decision_rule": rule, "cut_off": cut_off, **changes})


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_survives_json_alone_and_in_a_head(rule: Any):
    again = rule_from_document(json.loads(json.dumps(rule_document(rule))))
    assert again == rule
    assert type(again) is type(rule)
    head = head_of(rule)
    again = PostProcessingHead.from_json(head.to_json())
    assert again == head
    assert again.digest == head.digest
    assert again.decision_rule == rule
    assert json.loads(head.to_json())["schema_version"] == (1 if rule == BayesRule() else 2)


def test_a_head_of_schema_1_keeps_its_digest():
    """Computed by the version before there were decision rules."""
    head = PostProcessingHead.from_document(OLD_HEAD)
    assert head.decision_rule == BayesRule()
    assert head.digest == OLD_DIGEST
    assert json.loads(head.to_json()) == OLD_HEAD


def test_rules_and_cut_offs_have_their_own_digests():
    heads = [head_of(rule) for rule in RULES]
    moved = replace(head_of(TargetValue("TPR", 0.85)), cut_off=0.26)
    assert len({head.digest for head in [*heads, moved, head_of(TargetValue("TPR", 0.85))]}) == len(heads) + 2


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (None, "decision_rule"),
        ({}, "decision_rule.kind"),
        ({"kind": "whim"}, "decision_rule.kind"),
        ({"kind": ["bayes"]}, "decision_rule.kind"),
        ({"kind": "bayes", "costs": []}, "decision_rule.costs"),
        ({"kind": "cut_offs"}, "decision_rule.thresholds"),
        ({"kind": "cut_offs", "thresholds": []}, "decision_rule.thresholds"),
        ({"kind": "cut_offs", "thresholds": "low"}, "decision_rule.thresholds"),
        ({"kind": "cut_offs", "thresholds": [0.0]}, "decision_rule.thresholds"),
        ({"kind": "cut_offs", "thresholds": [0.5, 1.0]}, "decision_rule.thresholds"),
        ({"kind": "cut_offs", "thresholds": [[0.5]]}, "decision_rule.thresholds"),
        ({"kind": "target_value", "value": 0.9}, "decision_rule.metric"),
        ({"kind": "target_value", "metric": "TPR"}, "decision_rule.value"),
        ({"kind": "target_value", "metric": "AUROC", "value": 0.9}, "decision_rule.metric"),
        ({"kind": "target_value", "metric": ["TPR"], "value": 0.9}, "decision_rule.metric"),
        ({"kind": "target_value", "metric": "TPR", "value": 1.0}, "decision_rule.value"),
        ({"kind": "target_value", "metric": "TPR", "value": 1e-320}, "decision_rule.value"),
        ({"kind": "target_value", "metric": "TPR", "value": "0.9"}, "decision_rule.value"),
        ({"kind": "cut_offs", "thresholds": None}, "decision_rule.thresholds"),
        ({"kind": "target_value", "metric": "TPR", "value": True}, "decision_rule.value"),
        (
            {"kind": "target_value", "metric": "TPR", "value": 0.9, "positive_class": -1},
            "decision_rule.positive_class",
        ),
        (
            {"kind": "target_value", "metric": "TPR", "value": 0.9, "positive_class": True},
            "decision_rule.positive_class",
        ),
        (
            {"kind": "target_value", "metric": "TPR", "value": 0.9, "positive_class": 1.0},
            "decision_rule.positive_class",
        ),
        ({"kind": "target_value", "metric": "TPR", "value": 0.9, "beta": 1}, "decision_rule.beta"),
        ({"kind": "optimised_metric"}, "decision_rule.metric"),
        ({"kind": "optimised_metric", "metric": "kappa"}, "decision_rule.metric"),
        ({"kind": "optimised_metric", "metric": "F_beta", "beta": 0}, "decision_rule.beta"),
        ({"kind": "optimised_metric", "metric": "F_beta", "beta": 1e6}, "decision_rule.beta"),
        (
            {"kind": "optimised_metric", "metric": "MCC", "positive_class": "malignant"},
            "decision_rule.positive_class",
        ),
        ({"kind": "target_value", "metric": "TPR", "value": 10**5000}, "decision_rule.value"),
        ({"kind": "cut_offs", "thresholds": [-(10**400)]}, "decision_rule.thresholds"),
        ({"kind": "optimised_metric", "metric": "F_beta", "beta": 10**400}, "decision_rule.beta"),
        ({"kind": "optimised_metric", "metric": "F_beta", "beta": "1"}, "decision_rule.beta"),
        ({"kind": "optimised_metric", "metric": "F_beta", "beta": True}, "decision_rule.beta"),
    ],
)
def test_a_bad_document_is_refused_by_its_field(document: object, field: str):
    with pytest.raises(InvalidInputError) as caught:
        rule_from_document(document)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("rule", "classes", "field"),
    [
        (CutOffs([0.1, 0.2, 0.3]), 2, "decision_rule.thresholds"),
        (CutOffs(0.1), 3, "decision_rule.thresholds"),
        (TargetValue("TPR", 0.9, 2), 2, "decision_rule.positive_class"),
        (OptimisedMetric("F_beta", positive_class=3), 3, "decision_rule.positive_class"),
        (OptimisedMetric("MCC"), 3, "decision_rule.metric"),
    ],
)
def test_a_rule_for_other_classes_is_refused(rule: Any, classes: int, field: str):
    with pytest.raises(InvalidInputError) as caught:
        check_rule(rule, classes)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("rule", "cut_off"),
    [
        (TargetValue("TPR", 0.9), None),
        (TargetValue("TPR", 0.9), 1.5),
        (TargetValue("TPR", 0.9), True),
        (TargetValue("TPR", 0.9), "low"),
        (TargetValue("TPR", 0.9), [0.1, 0.2]),
        (OptimisedMetric("F_beta"), None),
        (OptimisedMetric("BA"), 0.5),
        (BayesRule(), 0.5),
        (CutOffs(0.2), 0.2),
    ],
)
def test_a_head_has_a_cut_off_where_its_rule_searches_one_and_nowhere_else(rule: Any, cut_off: Any):
    with pytest.raises(InvalidInputError) as caught:
        head_of(rule, cut_off=cut_off)
    assert caught.value.field == "cut_off"


def test_a_head_document_names_the_missing_rule():
    document = head_of(TargetValue("TPR", 0.9)).to_document()
    for name in ("decision_rule", "cut_off"):
        with pytest.raises(InvalidInputError) as caught:
            PostProcessingHead.from_document({key: document[key] for key in document if key != name})
        assert caught.value.field == name


def test_the_rules_that_search_and_those_with_a_metric_of_their_own():
    assert [rule for rule in RULES if needs_cut_off(rule)] == [
        rule for rule in RULES if getattr(rule, "metric", "") in (*TARGET_METRICS, "F_beta", "MCC")
    ]
    assert {rule.metric for rule in RULES if has_own_metric(rule) and not needs_cut_off(rule)} == {"BA"}
    best = {metric: TargetValue(metric, 0.5).objective for metric in TARGET_METRICS}
    assert best == {"TPR": "TNR", "TNR": "TPR", "PPV": "TPR", "NPV": "TNR", "PPR": "TPR"}


@pytest.mark.parametrize("metric", TARGET_METRICS)
def test_a_prevalence_of_0_or_1_leaves_nothing_to_search(metric: Any):
    rng = np.random.default_rng(0)
    data = LabeledLogits(rng.normal(size=(40, 2)), np.arange(40) % 2)
    for shares in ([1.0, 0.0], [0.0, 1.0]):
        with pytest.raises(InvalidInputError) as caught:
            fit_head(
                data, OLD_HEAD["costs"], target_prevalence=shares, decision_rule=TargetValue(metric, 0.9)
            )
        assert caught.value.field == "target_prevalence"


def test_a_metric_reaches_at_least_its_target():
    assert {Target(metric, 0.9).sign for metric in TARGET_METRICS if metric != "PPR"} == {1.0}
    target = Target("NPV", 0.9)
    assert str(target) == "at least 0.9"
    assert target.reaches(np.array([0.89, 0.9 - 1e-14, 0.9, 0.95, nan])).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert [target.is_kept(*ends) for ends in [(0.9, 0.95), (0.89, 0.95), (nan, 0.95)]] == [
        True,
        False,
        False,
    ]
    assert [target.is_missed(*ends) for ends in [(0.8, 0.89), (0.8, 0.9), (nan, 0.8)]] == [True, False, False]
    assert [target.progress(value) for value in (0.5, 0.9, 0.95, nan)] == [0.5, 0.9, 0.9, 0.9]


def test_the_share_of_positives_reaches_at_most_its_target():
    target = TargetValue("PPR", 0.2).target
    assert str(target) == "at most 0.2"
    assert target.reaches(np.array([0.1, 0.2 + 1e-14, 0.21, nan])).tolist() == [True, True, False, False]
    assert [target.is_kept(*ends) for ends in [(0.1, 0.2), (0.1, 0.21), (0.1, nan)]] == [True, False, False]
    assert [target.is_missed(*ends) for ends in [(0.21, 0.3), (0.2, 0.3), (0.3, nan)]] == [True, False, False]
    assert [target.progress(value) for value in (0.5, 0.2, 0.1, nan)] == [-0.5, -0.2, -0.2, -0.2]
