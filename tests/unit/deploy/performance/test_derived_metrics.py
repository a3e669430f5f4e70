import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lifelong_core.deploy.performance.derived_metrics import (
    metric_gradients,
    metric_intervals,
)
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.catalogue import counting_metric
from lifelong_core.values.errors import InvalidInputError

COUNTING = tuple(name for name, card in METRICS.items() if card.family == "counting" and name != "NB")
COSTS = np.array([[0.0, 1.0, 4.0, 0.5], [2.0, 0.0, 1.0, 0.5], [3.0, 1.0, 0.0, 0.5]])


@pytest.mark.parametrize("acronym", COUNTING)
@given(
    shares=arrays.arrays(np.float64, (3, 4), elements=st.floats(0.01, 1)),
    direction=arrays.arrays(np.float64, (3, 4), elements=st.floats(-1, 1)),
)
def test_gradients_are_the_change_of_the_metric(acronym, shares, direction):
    shares /= shares.sum()
    step = 1e-6 * direction
    metric = counting_metric(acronym, costs=COSTS if acronym in ("EC", "NEC", "WCK") else None)
    found = metric_gradients(shares, [acronym], COSTS)
    change = np.atleast_1d(metric(shares + step) - metric(shares - step)) / 2
    assert found.values == pytest.approx(np.atleast_1d(metric(shares)))
    size = np.abs(found.gradients).max(initial=1)
    assert np.einsum("kij,ij->k", found.gradients, step) == pytest.approx(change, abs=1e-9 * size)


def test_a_binary_task_has_one_value_per_metric():
    found = metric_gradients([[4, 1], [2, 3]], ["AC", "PPV", "BA"])
    assert found.names == ("AC", "PPV", "BA")
    assert found.values == pytest.approx([0.7, 0.75, 0.7])


def test_counts_give_the_derivatives_at_shares():
    counts, shares = (metric_gradients(np.array([[4.0, 1], [2, 3]]) / scale, ["TPR"]) for scale in (1, 10))
    assert counts.gradients == pytest.approx(shares.gradients)


def test_an_entry_of_zero_has_a_derivative():
    found = metric_gradients([[0.5, 0.0], [0.1, 0.4]], ["PPV"])
    # PPV = TP / (TP + FP): the derivative by FP is -TP / (TP + FP)^2
    assert found.gradients[0, 0, 1] == pytest.approx(-1 / 0.4, rel=1e-3)


def test_an_undefined_metric_is_nan_with_an_unknown_interval():
    found = metric_gradients([[0.5, 0], [0.5, 0]], ["PPV"])
    assert np.isnan(found.values).all()
    assert np.isnan(metric_intervals(found, np.array([0.01]))["PPV"]).all()


def test_a_share_has_the_interval_of_wilson():
    found = metric_gradients([[45, 5], [0, 0]], ["AC"])
    low, high = metric_intervals(found, np.array([0.9 * 0.1 / 50]))["AC"][1:]
    z, n, p = 1.959964, 50, 0.9
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    assert (low, high) == pytest.approx((centre - half, centre + half), abs=1e-6)


@given(
    share=st.floats(0, 1),
    error=st.floats(0, 2),
    confidence=st.floats(0.5, 0.999),
)
def test_intervals_hold_the_value_and_keep_the_bounds(share, error, confidence):
    found = metric_gradients([[share, 1 - share], [0, 0]], ["AC", "EC"], [[0, 5], [1, 0]])
    intervals = metric_intervals(found, np.array([error**2, 25 * error**2]), confidence=confidence)
    assert 0 <= intervals["AC"].low <= intervals["AC"].value <= intervals["AC"].high <= 1
    assert 0 <= intervals["EC"].low <= intervals["EC"].value <= intervals["EC"].high <= 5


def test_fewer_degrees_of_freedom_widen_the_interval():
    found = metric_gradients([[45, 5], [0, 0]], ["AC"])
    many, few = (
        metric_intervals(found, np.array([0.001]), degrees_of_freedom=freedom)["AC"]
        for freedom in (np.inf, 4)
    )
    assert few.low < many.low < many.high < few.high


def test_errors_name_the_field():
    with pytest.raises(InvalidInputError, match="confusion"):
        metric_gradients([[0, 0], [0, 0]])
    with pytest.raises(InvalidInputError, match="acronym"):
        metric_gradients([[1, 0], [0, 1]], ["AUROC"])


def test_costs_that_are_not_negative_bound_the_normalised_expected_cost():
    found = metric_gradients([[40, 10], [5, 45]], ["NEC"], [[0, 1], [2, 0]])
    assert metric_intervals(found, np.array([100.0]))["NEC"].low == 0
    credit = metric_gradients([[40, 10], [5, 45]], ["NEC"], [[-1, 1], [2, 0]])
    assert metric_intervals(credit, np.array([100.0]))["NEC"].low < 0
