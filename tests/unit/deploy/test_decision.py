import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lifelong_core.deploy import bayes_decisions
from lifelong_core.values.errors import InvalidInputError


def zero_one(classes):
    return 1 - np.eye(classes)


@st.composite
def probabilities(draw, classes):
    weights = draw(hnp.arrays(float, (draw(st.integers(1, 5)), classes), elements=st.floats(0, 1)))
    weights[:, 0] += 1e-3
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("decisions", [3, 4])
def test_agrees_with_the_formula_term_by_term(decisions):
    """A direct transcription of thesis Def. 6.9."""
    rng = np.random.default_rng(decisions)
    rows = rng.dirichlet(np.ones(3), size=500)
    costs = rng.normal(size=(3, decisions))
    expected = [
        min(range(decisions), key=lambda k: sum(costs[j, k] * row[j] for j in range(3))) for row in rows
    ]
    assert bayes_decisions(rows, costs).tolist() == expected


@given(st.integers(2, 6).flatmap(probabilities))
def test_zero_one_costs_mean_argmax_bit_by_bit(rows):
    """Thesis Prop. 6.10, ties and differences of one unit in the last place included."""
    assert bayes_decisions(rows, zero_one(rows.shape[1])).tolist() == rows.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("row", "costs", "decision"),
    [
        ([0.5, 0.5], zero_one(2), 0),
        ([0.1, 0.4, 0.1, 0.4], zero_one(4), 1),  # .1 + .1 + .4 is not .1 + .4 + .1 in float64
        ([0.9, 0.1], [[0, 1], [9, 0]], 0),  # 9 * .1 is not .9
        ([0.45, 0.05, 0.05, 0.45], np.abs(np.subtract.outer(np.arange(4), np.arange(4))), 1),
        ([0.3, 0.7], [[2, 2], [2, 2]], 0),
        ([0.6, 0.4], [[0, 1, 0.4], [1, 0, 0.4]], 0),  # abstaining costs just as much
    ],
)
def test_the_first_of_equal_decisions_wins_whatever_the_rounding(row, costs, decision):
    assert bayes_decisions([row], costs).tolist() == [decision]


def test_a_real_difference_is_no_tie():
    assert bayes_decisions([[0.9 - 1e-12, 0.1 + 1e-12]], [[0, 1], [9, 0]]).tolist() == [1]


def test_dear_misses_turn_the_decision():
    assert bayes_decisions([[0.8, 0.2]], zero_one(2)).tolist() == [0]
    assert bayes_decisions([[0.8, 0.2]], [[0, 1], [10, 0]]).tolist() == [1]


def test_an_empty_batch_gives_no_decision():
    assert bayes_decisions(np.empty((0, 3)), zero_one(3)).shape == (0,)


@pytest.mark.parametrize(
    ("rows", "costs", "field"),
    [([[0.5, 0.6]], zero_one(2), "probabilities"), ([[0.5, 0.5]], zero_one(3), "costs")],
)
def test_bad_arguments_are_named(rows, costs, field):
    with pytest.raises(InvalidInputError) as caught:
        bayes_decisions(rows, costs)
    assert caught.value.field == field
