import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics import confusion_matrix, expected_cost
from lifelong_core.metrics.counting.cost import linear_costs, naive_decision, quadratic_costs, zero_one_costs
from lifelong_core.metrics.counting.multiclass import normalised_expected_cost
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.counting_cases import confusions


@pytest.mark.parametrize("columns", [3, 4])
def test_is_the_mean_cost_of_the_decisions(columns):
    rng = np.random.default_rng(0)
    labels, decisions = rng.integers(3, size=200), rng.integers(columns, size=200)
    costs = rng.normal(size=(3, columns))
    confusion = confusion_matrix(labels, decisions, classes=3, decisions_count=columns)
    assert expected_cost(confusion, costs) == pytest.approx(costs[labels, decisions].mean())


def test_a_replaced_prevalence_weights_the_rows():
    """A direct transcription of thesis Prop. 2.25."""
    rng = np.random.default_rng(1)
    confusion, costs, prevalence = (
        rng.integers(1, 20, size=(4, 4)),
        rng.uniform(size=(4, 4)),
        rng.dirichlet(np.ones(4)),
    )
    expected = sum(
        prevalence[i] * sum(costs[i, j] * confusion[i, j] / confusion[i].sum() for j in range(4))
        for i in range(4)
    )
    assert expected_cost(confusion, costs, prevalence=prevalence) == pytest.approx(expected)


def test_its_own_prevalence_changes_nothing():
    confusion, costs = np.array([[8, 2], [3, 7]]), np.array([[0, 1], [5, 0.0]])
    assert expected_cost(confusion, costs, prevalence=[0.5, 0.5]) == pytest.approx(
        expected_cost(confusion, costs)
    )


def test_is_undefined_without_samples():
    costs = 1 - np.eye(2)
    assert math.isnan(expected_cost(np.zeros((2, 2)), costs))
    assert math.isnan(expected_cost([[3, 1], [0, 0]], costs, prevalence=[0.5, 0.5]))


def test_an_empty_class_of_no_prevalence_does_not_matter():
    assert expected_cost([[3, 1], [0, 0]], 1 - np.eye(2), prevalence=[1, 0]) == 0.25
    assert expected_cost([[3, 1], [0, 0]], 1 - np.eye(2)) == 0.25


@pytest.mark.parametrize(
    ("confusion", "costs", "prevalence", "field"),
    [
        ([[1, -1], [0, 1]], 1 - np.eye(2), None, "confusion"),
        ([[1, 1], [0, 1]], 1 - np.eye(3), None, "costs"),
        ([[1, 1], [0, 1]], np.ones((2, 3)), None, "costs"),
        ([[1, 1], [0, 1]], 1 - np.eye(2), [0.5, 0.6], "prevalence"),
        ([[1, 1], [0, 1]], 1 - np.eye(2), [0.2, 0.3, 0.5], "prevalence"),
    ],
)
def test_bad_arguments_are_named(confusion, costs, prevalence, field):
    with pytest.raises(InvalidInputError) as caught:
        expected_cost(confusion, costs, prevalence=prevalence)
    assert caught.value.field == field


@given(confusions(), st.integers(0, 99), st.booleans())
def test_the_naive_decision_is_the_cheapest_constant_one(confusion, seed, replaced):
    """Direct transcriptions of thesis Def. 2.26 and 2.27: each constant decision is a confusion matrix itself."""
    rng = np.random.default_rng(seed)
    costs, sizes = rng.integers(-2, 5, size=confusion.shape), confusion.sum(axis=1)
    prevalence = rng.dirichlet(np.ones(len(sizes))) if replaced else None
    if not (sizes.all() if replaced else sizes.any()):
        return
    constant = []
    for decision in range(confusion.shape[1]):
        decided = np.zeros_like(confusion)
        decided[:, decision] = sizes
        constant.append(expected_cost(decided, costs, prevalence=prevalence))
    cheapest, own = min(constant), expected_cost(confusion, costs, prevalence=prevalence)
    assert constant[naive_decision(confusion, costs, prevalence=prevalence)] == pytest.approx(cheapest)
    if cheapest:
        found = normalised_expected_cost(confusion, costs, prevalence=prevalence)
        assert found == pytest.approx(own / cheapest)


def test_a_constant_decision_that_is_free():
    assert math.isnan(normalised_expected_cost([[3, 0], [0, 0]]))
    assert normalised_expected_cost([[0, 3], [0, 0]]) == math.inf
    assert normalised_expected_cost([[0, 3], [0, 0]], [[0, -1], [1, 1]]) == 1
    assert normalised_expected_cost([[3, 0], [0, 0]], [[-1, 0], [1, 1]], prevalence=[1, 0]) == 1
    assert normalised_expected_cost([[2, 0], [0, 2]], [[-1, 0], [0, 0]], prevalence=[0.5, 0.5]) == 1


def test_the_naive_decision_of_ties_and_of_nothing():
    assert naive_decision([[2, 2], [0, 4]]) == 0
    assert naive_decision(np.zeros((2, 2))) is None
    assert naive_decision(np.zeros((2, 2)), prevalence=[0.2, 0.8]) == 1
    assert math.isnan(normalised_expected_cost(np.zeros((2, 2)), prevalence=[0.2, 0.8]))
    assert naive_decision([[2, 2, 0], [0, 4, 0]], [[0, 1, 0.1], [1, 0, 0.1]]) == 2  # abstaining


def test_orders_of_costs():
    assert (quadratic_costs(4) == linear_costs(4) ** 2).all()
    assert zero_one_costs(2, 3).tolist() == [[0, 1, 1], [1, 0, 1]]
    for costs in (zero_one_costs, linear_costs, quadratic_costs):
        assert (costs(2) == [[0, 1], [1, 0]]).all()
        with pytest.raises(InvalidInputError):
            costs(1)


def test_a_replaced_prevalence_of_an_absent_class():
    confusion = [[3, 1, 0], [0, 0, 0], [0, 2, 2]]
    assert normalised_expected_cost(confusion, prevalence=[0.5, 0, 0.5]) == pytest.approx(0.375 / 0.5)
    assert math.isnan(normalised_expected_cost(confusion, prevalence=[0.4, 0.2, 0.4]))
