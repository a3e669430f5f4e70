import math

import numpy as np
import pytest

from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import accuracy, confusion_matrix, expected_cost


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


def test_zero_one_costs_give_the_error_rate():
    confusion = np.array([[8, 2, 0], [3, 7, 1], [0, 0, 4]])
    assert expected_cost(confusion, 1 - np.eye(3)) == pytest.approx(1 - accuracy(confusion))


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
