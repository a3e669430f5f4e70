"""Metrics of users in `compute_metrics`."""

import math

import numpy as np
import pytest

from lifelong_core.metrics import METRICS, CustomMetric, compute_metrics
from lifelong_core.values.errors import InvalidInputError

LABELS, PROBABILITIES = [0, 1, 1], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]


def right(labels, decisions):
    return (labels == decisions).mean()


def metric(**changed):
    card = {
        "acronym": "MINE",
        "name": "My accuracy",
        "function": right,
        "meaning": "How often it is right.",
        "orientation": "up",
        "needs": ("labels", "decisions"),
        "bounds": (0, 1),
    }
    return CustomMetric(**(card | changed))


def test_it_is_computed_where_its_name_is_asked_for():
    given = {"labels": LABELS, "probabilities": PROBABILITIES, "custom": [metric()]}
    found = compute_metrics(["MINE", "AC"], **given)
    assert list(found) == ["MINE", "AC"]
    assert found["MINE"] == found["AC"] == pytest.approx(2 / 3)
    assert list(compute_metrics(["AC"], **given)) == ["AC"]
    assert "MINE" not in METRICS


def test_given_decisions_count_and_invalid_ones_are_the_worst_value():
    given = {"labels": [0, 1, 1, 0], "decisions": [0, 1, -1, 1], "classes": 2}
    found = compute_metrics(
        ["MINE", "AC", "WRONG"],
        **given,
        custom=[
            metric(),
            metric(
                acronym="WRONG",
                function=lambda labels, decisions: 1 - right(labels, decisions),
                orientation="down",
            ),
        ],
    )
    assert found["MINE"] == found["AC"] == 0.5
    assert found["WRONG"] == 0.5
    unbounded = compute_metrics(["MINE"], **given, custom=[metric(bounds=(-math.inf, 1))])
    assert math.isnan(unbounded["MINE"])
    assert unbounded.reasons["MINE"] == "its function gave no number"


def test_the_function_gets_what_it_needs_read_only():
    seen = {}

    def look(**arrays):
        seen.update(arrays)
        return math.nan

    needs = ("probabilities", "labels")
    found = compute_metrics(
        ["MINE"], labels=LABELS, probabilities=PROBABILITIES, custom=[metric(function=look, needs=needs)]
    )
    assert set(seen) == set(needs)
    assert np.array_equal(seen["probabilities"], PROBABILITIES)
    assert not any(array.flags.writeable for array in seen.values())
    assert math.isnan(found["MINE"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"acronym": "BA"}, "acronym: BA is a metric of the pool"),
        ({"acronym": "1x"}, "acronym: expected a letter"),
        ({"acronym": "x" * 41}, "acronym: expected a letter"),
        ({"name": " "}, "name: expected a text"),
        ({"meaning": "x" * 1001}, "meaning: expected a text"),
        ({"function": 3}, "function: expected a function"),
        ({"orientation": "high"}, "orientation: expected"),
        ({"needs": ()}, "needs: expected"),
        ({"needs": ("logits",)}, "needs: expected"),
        ({"bounds": (1, 0)}, "bounds: expected two ascending"),
        ({"bounds": (math.nan, 0)}, "bounds: expected two ascending"),
    ],
)
def test_a_card_that_does_not_fit(changed, message):
    with pytest.raises(InvalidInputError, match=message):
        metric(**changed)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: 0.5, "custom.MINE: the function failed: TypeError"),
        (lambda **_: "high", "custom.MINE: the function failed: ValueError"),
        (lambda **_: 1.5, "custom.MINE: the function returned 1.5"),
        (lambda **_: -math.inf, "custom.MINE: the function returned -inf"),
    ],
)
def test_a_function_that_does_not_fit(function, message):
    with pytest.raises(InvalidInputError, match=message):
        compute_metrics(
            ["MINE"], labels=LABELS, probabilities=PROBABILITIES, custom=[metric(function=function)]
        )


def test_inputs_that_are_missing():
    with pytest.raises(InvalidInputError, match="probabilities: MINE needs probabilities"):
        compute_metrics(["MINE"], labels=[0, 1], decisions=[0, 1], custom=[metric(needs=("probabilities",))])
    with pytest.raises(InvalidInputError, match="labels: MINE needs labels"):
        compute_metrics(["MINE"], confusion_matrix=np.eye(2), custom=[metric()])
    with pytest.raises(InvalidInputError, match="custom: MINE is given twice"):
        compute_metrics(["MINE"], labels=[0], decisions=[0], custom=[metric(), metric()])
    with pytest.raises(InvalidInputError, match="custom: expected a CustomMetric, got function"):
        compute_metrics(["AC"], labels=[0], decisions=[0], custom=[right])
