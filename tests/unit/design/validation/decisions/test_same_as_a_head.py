"""Contract of all decision rules: on the same probabilities, a validation and a head decide alike."""

from typing import Any

import numpy as np
import pytest

from lifelong_core.decision_rules.decide import executed_rule
from lifelong_core.decision_rules.operating_points import search_cut_off
from lifelong_core.decision_rules.rules import Argmax, needs_cut_off
from lifelong_core.deploy import LabeledLogits, fit_head
from lifelong_core.design import ModelOutputs, ProblemFingerprint, validate
from lifelong_core.design.recommendation.stated_rule import StatedRule, stated_rule
from lifelong_core.design.validation.decisions.decide import DecidedSamples, decide
from lifelong_core.design.validation.values.class_mix import ClassMix
from lifelong_core.design.validation.values.evaluation import Split
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import confusion_matrix, corrected_probabilities
from tests.unit.design.validations import recommending

COSTS = {2: ((0.0, 1.0), (20.0, 0.0)), 3: ((0.0, 1.0, 0.3), (4.0, 0.0, 2.0), (1.0, 0.7, 0.0))}
ABSTAIN = {2: ((0.0, 1.0, 0.2), (20.0, 0.0, 0.4)), 3: tuple((*row, 0.25) for row in COSTS[3])}
IN_USE = {2: (0.9, 0.1), 3: (0.2, 0.7, 0.1)}


def target(metric: str, value: float, positive: int = 1) -> dict[str, Any]:
    stated = {"target_metric": metric, "target_value": value, "target_class": positive}
    return {"decision_rule": "target_value", **stated}


def best(metric: str, **answers: Any) -> dict[str, Any]:
    return {"decision_rule": "optimization", "optimised_metric": metric, **answers}


BOTH: list[dict[str, Any]] = [
    {"decision_rule": "argmax"},
    {"decision_rule": "cost_benefit", "unequal_severity": False},
    {"decision_rule": "cost_benefit", "costs": COSTS},
    {"decision_rule": "cost_benefit", "costs": ABSTAIN},
    *(
        target(metric, value, positive)
        for metric in ("TPR", "TNR", "PPV", "NPV", "PPR")
        for value, positive in ((0.001, 0), (0.8, 0), (0.999, 1))
    ),
    *(
        best("F_beta", target_class=1, worse_error=error)
        for error in ("missed_case", "false_alarm", "neither")
    ),
]
BINARY = [
    {"decision_rule": "cost_benefit", "risk_threshold": 0.1},
    {"decision_rule": "cost_benefit", "risk_threshold": 0.1, "target_class": 0},
    best("MCC"),
    best("EC", costs=ABSTAIN),
]
MANY = [best("AC"), best("BA"), best("EC", costs=COSTS)]
CASES = [(2, one) for one in BOTH + BINARY] + [(3, one) for one in BOTH + MANY]


def name_of(value: Any) -> str:
    parts = value.values() if isinstance(value, dict) else (value,)
    return "-".join(str(part) for part in parts if not isinstance(part, dict))


def fingerprint_of(
    classes: int, answers: dict[str, Any], shares: tuple[float, ...] | None
) -> ProblemFingerprint:
    given = {key: value[classes] if isinstance(value, dict) else value for key, value in answers.items()}
    of_use = {"prevalences_representative": True}
    if shares is not None:
        of_use = {
            "prevalences_representative": False,
            "target_prevalences_known": True,
            "target_prevalences": shares,
        }
    return ProblemFingerprint(number_of_classes=classes, **given, **of_use)


def logits(classes: int, samples: int, seed: int) -> LabeledLogits:
    """With ties, and classes of unequal frequency."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.choice(classes, samples - classes, p=_shares(classes))])
    noise = rng.normal(size=(samples, classes))
    return LabeledLogits((1.5 * np.eye(classes)[labels] + noise).round(1), labels)


def _shares(classes: int) -> np.ndarray:
    return np.arange(classes, 0, -1) / np.arange(classes + 1).sum()


def decided(
    fingerprint: ProblemFingerprint,
    judged: tuple[Any, Any],
    others: tuple[Any, Any],
    score_prevalence: Any,
) -> tuple[StatedRule, DecidedSamples]:
    """By a validation, whose cut-offs are chosen on the others."""
    classes, stated = fingerprint.number_of_classes or 2, stated_rule(fingerprint)
    samples, chosen_on = (
        Samples.of(labels, ModelOutputs(probabilities=probabilities), classes=classes)
        for labels, probabilities in (judged, others)
    )
    mix = ClassMix.of(fingerprint, samples.labels, score_prevalence)
    split = Split.other(samples, chosen_on)
    return stated, decide(stated, samples, mix, split, score_prevalence=score_prevalence)


@pytest.mark.parametrize("is_stated", [False, True], ids=["as-in-the-data", "stated"])
@pytest.mark.parametrize(("classes", "answers"), CASES, ids=name_of)
def test_decisions_are_those_of_the_searched_and_executed_rule(
    classes: int, answers: dict[str, Any], is_stated: bool
):
    shares = IN_USE[classes] if is_stated else None
    one, two = logits(classes, 300, 1), logits(classes, 200, 2)
    judged, others = ((data.labels, _probabilities(data)) for data in (one, two))
    stated, found = decided(fingerprint_of(classes, answers, shares), judged, others, one.prevalence)
    rule, costs = stated.rule, stated.costs or 1 - np.eye(classes)
    assert rule is not None
    assert found.source == "rule"
    cut_off, probabilities, prevalence = None, judged[1], one.prevalence
    if needs_cut_off(rule):
        cut_off = search_cut_off(rule, others[1], others[0], np.array(shares or two.prevalence))
    elif shares is not None and not isinstance(rule, Argmax):
        prevalence = np.array(shares)
        probabilities = corrected_probabilities(probabilities, given=one.prevalence, wanted=prevalence)
    executed = executed_rule(rule, np.array(costs, dtype=np.float64), prevalence, cut_off)
    assert found.samples.decisions.tolist() == executed.decide(probabilities).tolist()


@pytest.mark.parametrize("is_stated", [False, True], ids=["as-in-the-data", "stated"])
@pytest.mark.parametrize(("classes", "answers"), CASES, ids=name_of)
def test_a_fitted_head_decides_as_the_validation_of_its_probabilities(
    classes: int, answers: dict[str, Any], is_stated: bool
):
    calibration, test = logits(classes, 300, 3), logits(classes, 250, 4)
    shares = IN_USE[classes] if is_stated else None
    fingerprint = fingerprint_of(classes, answers, shares)
    stated = stated_rule(fingerprint)
    head = fit_head(
        calibration,
        stated.costs or 1 - np.eye(classes),
        target_prevalence=shares,
        decision_rule=stated.rule,
    )
    output = head.apply(test.logits)
    others = (calibration.labels, head.apply(calibration.logits).probabilities)
    _, found = decided(fingerprint, (test.labels, output.probabilities), others, head.assumed_prevalence)
    assert found.samples.decisions.tolist() == output.decisions.tolist()
    used = found.cut_off()
    assert (None if used is None else used.threshold) == head.cut_off


def test_the_judged_confusion_is_that_of_the_head():
    calibration, test = logits(2, 300, 3), logits(2, 250, 4)
    rule = stated_rule(fingerprint_of(2, target("NPV", 0.95), None)).rule
    head = fit_head(calibration, 1 - np.eye(2), decision_rule=rule)
    output = head.apply(test.logits)
    result = validate(
        recommending(
            "BA", **{"number_of_classes": 2, **target("NPV", 0.95), "prevalences_representative": True}
        ),
        test.labels,
        probabilities=output.probabilities,
        cut_off_data=(calibration.labels, head.apply(calibration.logits).probabilities),
        replicates=20,
    )
    wanted = confusion_matrix(test.labels, output.decisions, classes=2)
    assert result.confusion is not None
    assert result.confusion.counts == tuple(map(tuple, wanted.tolist()))


def _probabilities(data: LabeledLogits) -> np.ndarray:
    powers = np.exp(data.logits.astype(np.float64))
    return powers / powers.sum(axis=1, keepdims=True)
