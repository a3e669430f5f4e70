"""Heads and their differences in words: what the words say is what the heads do."""

import numpy as np
import pytest

from lifelong_core.decision_rules.rules import Argmax, CutOffs, TargetValue
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.head_wording import (
    describe_difference,
    describe_head,
    parameter_changes,
    percent,
    threshold,
)

NAMES = ("benign", "malignant")


def head(prevalence: float = 0.12, **changes: object) -> PostProcessingHead:
    fields = {
        "temperature": 1.0,
        "bias": [0.0, 0.0],
        "costs": [[0, 1], [5, 0]],
        "assumed_prevalence": [1 - prevalence, prevalence],
        "class_names": NAMES,
    }
    return PostProcessingHead(**{**fields, **changes})


@pytest.mark.parametrize(
    "found",
    [
        head(),
        head(costs=[[1, 2], [9, 0]]),
        head(decision_rule=CutOffs(0.3)),
        head(decision_rule=Argmax()),
        head(decision_rule=TargetValue("TPR", 0.9), cut_off=0.42),
    ],
)
def test_the_threshold_is_where_the_decision_changes(found: PostProcessingHead) -> None:
    named = threshold(found)
    assert named is not None
    name, value = named
    logits = np.log([[1 - p, p] for p in (value - 1e-4, value + 1e-4)])
    assert found.apply(logits).decisions.tolist() == [0, 1]
    assert f"{name} from a probability of {value:.3g} on" in describe_head(found)


def test_no_threshold_where_one_decision_always_costs_less_or_a_third_exists() -> None:
    assert threshold(head(costs=[[0, 1, 0.3], [5, 0, 0.3]])) is None
    assert threshold(head(costs=[[0, 0], [0, 0]])) is None
    assert describe_head(head(costs=[[0, 1, 0.3], [5, 0, 0.3]])).endswith("by least expected cost")


def test_many_classes_are_named_by_their_shares() -> None:
    names, shares = tuple("abcde"), [0.05, 0.5, 0.3, 0.1, 0.05]
    found = PostProcessingHead(1.0, np.zeros(5), 1 - np.eye(5), shares, names)
    assert describe_head(found).startswith("assumes 50 % b, 30 % c, 10 % d and 2 more classes and decides by")


def test_differences_name_what_changes_and_nothing_else() -> None:
    one = head()
    assert describe_difference(one, head(bias=[1.0, 1.0])) == []
    assert parameter_changes(one, head(bias=[1.0, 1.0])) == {}
    other = head(0.3, temperature=2.0, bias=[0.0, -1.0], decision_rule=Argmax())
    assert describe_difference(one, other) == [
        "It assumes 30 % malignant instead of 12 %.",
        "It decides malignant from a probability of 0.5 on instead of malignant from a probability of 0.167 on.",
        "For equal logits, benign becomes more and malignant less probable.",
        "Its probabilities are closer to each other (temperature 2 instead of 1).",
    ]
    changed = parameter_changes(one, other)
    assert changed["bias of malignant"] == (0.0, -0.5)
    assert changed["temperature of benign"] == (1.0, 2.0)
    assert "cost of deciding benign for malignant" not in changed
    assert describe_difference(one, head(costs=[[0, 2], [10, 0]])) == ["It weighs errors by other costs."]


def test_small_shares_keep_their_first_digits() -> None:
    assert [percent(share) for share in (0, 0.00012, 0.0046, 0.5)] == ["0 %", "0.012 %", "0.5 %", "50 %"]
