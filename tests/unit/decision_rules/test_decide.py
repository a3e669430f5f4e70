"""Rules applied to probabilities, against the definition of each, row by row."""

from typing import Any

import numpy as np
import pytest

from lifelong_core.decision_rules.decide import CutOff, executed_rule, minimised_costs
from lifelong_core.deploy import Argmax, BayesRule, CutOffs, OptimisedMetric, TargetValue
from lifelong_core.values.errors import InvalidInputError

COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [6.0, 4.0, 0.0]])
SHARES = np.array([0.6, 0.3, 0.1])


def rows(classes: int, number: int = 300) -> np.ndarray:
    return np.random.default_rng(classes).dirichlet(np.ones(classes), size=number)


def by_least_cost(row: np.ndarray, costs: np.ndarray) -> int:
    expected = [sum(row[j] * costs[j, k] for j in range(len(row))) for k in range(costs.shape[1])]
    return int(np.argmin(expected))


@pytest.mark.parametrize("abstain", [False, True])
def test_the_bayes_rule_takes_the_least_expected_cost(abstain: bool):
    costs = np.column_stack([COSTS, np.full(3, 0.4)]) if abstain else COSTS
    probabilities = rows(3)
    found = executed_rule(BayesRule(), costs, SHARES, None).decide(probabilities)
    assert found.tolist() == [by_least_cost(row, costs) for row in probabilities]
    assert (3 in found) == abstain


@pytest.mark.parametrize("rule", [Argmax(), OptimisedMetric("AC")])
def test_argmax_takes_the_most_probable_class_and_never_abstains(rule: Any):
    costs = np.column_stack([COSTS, np.full(3, 0.01)])
    probabilities = rows(3)
    found = executed_rule(rule, costs, SHARES, None).decide(probabilities)
    assert found.tolist() == [int(np.argmax(row)) for row in probabilities]


def test_expected_cost_as_optimum_is_the_bayes_rule():
    found = executed_rule(OptimisedMetric("EC"), COSTS, SHARES, None).decide(rows(3))
    assert found.tolist() == executed_rule(BayesRule(), COSTS, SHARES, None).decide(rows(3)).tolist()


@pytest.mark.parametrize("threshold", [0.02, 0.25, 0.5, 0.93])
def test_one_cut_off_decides_class_1_from_this_probability_on(threshold: float):
    probabilities = rows(2)
    probabilities[0] = 1 - threshold, threshold
    found = executed_rule(CutOffs(threshold), COSTS[:2, :2], SHARES[:2], None).decide(probabilities)
    assert found.tolist() == [int(row[1] >= threshold) for row in probabilities]


def test_one_cut_off_is_the_bayes_rule_of_its_costs():
    """Costs t of a false positive and 1 - t of a false negative (thesis Remark 2.58)."""
    t, probabilities = 0.2, rows(2)
    costs = np.array([[0, t], [1 - t, 0]])
    assert minimised_costs(CutOffs(t), COSTS[:2, :2], SHARES[:2]).tolist() == costs.tolist()
    found = executed_rule(CutOffs(t), COSTS[:2, :2], SHARES[:2], None).decide(probabilities)
    assert found.tolist() == [by_least_cost(row, costs) for row in probabilities]


@pytest.mark.parametrize("thresholds", [(0.2, 0.5, 0.9), (0.5, 0.2, 0.5), (0.3, 0.3, 0.3)])
def test_several_cut_offs_take_the_largest_probability_over_cut_off(thresholds: tuple[float, ...]):
    probabilities = rows(3)
    found = executed_rule(CutOffs(thresholds), COSTS, SHARES, None).decide(probabilities)
    ratios = [[row[k] / thresholds[k] for k in range(3)] for row in probabilities]
    assert found.tolist() == [int(np.argmax(row)) for row in ratios]


def test_two_cut_offs_that_sum_to_one_are_one_cut_off():
    probabilities = rows(2)
    one = executed_rule(CutOffs(0.3), COSTS[:2, :2], SHARES[:2], None).decide(probabilities)
    two = executed_rule(CutOffs([0.7, 0.3]), COSTS[:2, :2], SHARES[:2], None).decide(probabilities)
    assert one.tolist() == two.tolist()


def test_balanced_accuracy_weighs_each_class_by_its_prevalence():
    """The best decision for BA is the class with the largest posterior over prevalence."""
    probabilities = rows(3)
    found = executed_rule(OptimisedMetric("BA"), COSTS, SHARES, None).decide(probabilities)
    assert found.tolist() == [int(np.argmax(row / SHARES)) for row in probabilities]


def test_balanced_accuracy_never_decides_for_a_class_that_cannot_occur():
    shares = np.array([0.7, 0.3, 0.0])
    probabilities = rows(3)
    probabilities[:, 2] = 0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    found = executed_rule(OptimisedMetric("BA"), COSTS, shares, None).decide(probabilities)
    assert found.tolist() == [int(np.argmax(row[:2] / shares[:2])) for row in probabilities]


@pytest.mark.parametrize("rule", [TargetValue("TPR", 0.9, 1), OptimisedMetric("F_beta", positive_class=1)])
def test_below_the_cut_off_the_most_probable_other_class_is_decided(rule: Any):
    probabilities = rows(3)
    probabilities[0] = 0.5, 0.35, 0.15  # exactly at the cut-off
    found = executed_rule(rule, COSTS, SHARES, 0.35).decide(probabilities)
    expected = [1 if row[1] >= 0.35 else (0 if row[0] >= row[2] else 2) for row in probabilities]
    assert found.tolist() == expected
    assert found[0] == 1


@pytest.mark.parametrize(
    ("rule", "row", "decision"),
    [
        (Argmax(), [1 / 3, 1 / 3, 1 / 3], 0),
        (BayesRule(), [1 / 3, 1 / 3, 1 / 3], 1),
        (CutOffs([0.25, 0.5, 0.5]), [0.25, 0.5, 0.25], 0),
    ],
)
def test_ties_go_to_the_first_class(rule: Any, row: list[float], decision: int):
    costs = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [6.0, 4.0, 0.0]])  # columns sum to 7, 5 and 4
    if isinstance(rule, BayesRule):
        costs = np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.5], [6.0, 4.5, 4.0]])  # to 7, 5 and 5
    assert executed_rule(rule, costs, SHARES, None).decide(np.array([row])).tolist() == [decision]


def test_ties_below_a_cut_off_go_to_the_first_other_class():
    found = CutOff(0, 0.6).decide(np.array([[0.2, 0.4, 0.4], [0.6, 0.2, 0.2], [0.0, 0.5, 0.5]]))
    assert found.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("rule", "cut_off"), [(TargetValue("TPR", 0.9), None), (BayesRule(), 0.5), (CutOffs(0.2), 0.2)]
)
def test_a_cut_off_that_does_not_belong_is_refused(rule: Any, cut_off: float | None):
    with pytest.raises(InvalidInputError) as caught:
        executed_rule(rule, COSTS[:2, :2], SHARES[:2], cut_off)
    assert caught.value.field == "cut_off"


def test_a_rule_with_a_searched_cut_off_minimises_no_cost():
    with pytest.raises(InvalidInputError) as caught:
        minimised_costs(TargetValue("TPR", 0.9), COSTS, SHARES)
    assert caught.value.field == "decision_rule"
