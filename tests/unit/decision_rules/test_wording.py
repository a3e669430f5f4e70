"""A rule as a phrase."""

from typing import Any

import pytest

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import Argmax, BayesRule, CutOffs, OptimisedMetric, TargetValue

NAMES = ("benign", "malignant")


@pytest.mark.parametrize(
    ("rule", "phrase"),
    [
        (BayesRule(), "least expected cost"),
        (Argmax(), "highest probability"),
        (CutOffs(0.25), "malignant from a probability of 0.25 on"),
        (CutOffs([0.75, 0.25]), "benign from a probability of 0.75 on"),
        (CutOffs([0.75, 0.5]), "largest probability over cut-off (benign 0.75, malignant 0.5)"),
        (TargetValue("TPR", 0.9), "sensitivity of malignant at least 0.9, then the best specificity"),
        (TargetValue("TNR", 0.9, 0), "specificity of benign at least 0.9, then the best sensitivity"),
        (TargetValue("NPV", 0.99), "negative predictive value of malignant at least 0.99, then the best specificity"),
        (TargetValue("PPR", 0.2), "share of positive decisions of malignant at most 0.2, then the best sensitivity"),
        (OptimisedMetric("F_beta", beta=2), "best F2 score of malignant"),
        (OptimisedMetric("BA"), "best balanced accuracy"),
        (OptimisedMetric("MCC"), "best MCC"),
    ],
)  # fmt: skip
def test_each_rule_has_its_phrase(rule: Any, phrase: str):
    assert describe_rule(rule, NAMES) == phrase
