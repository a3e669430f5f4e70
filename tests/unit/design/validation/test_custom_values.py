"""Metrics of users in a validation."""

import math

import numpy as np
import pytest

from lifelong_core.design import ModelOutputs, ValidationResult, compare, validate
from lifelong_core.design.report.pages import comparison_html, validation_html
from lifelong_core.metrics import CustomMetric
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import recommending, simulated

LABELS, PROBABILITIES = simulated(120, 3)
LOSS = CustomMetric(
    acronym="LOSS",
    name="Mean <loss>",
    function=lambda labels, probabilities: (1 - probabilities[np.arange(labels.size), labels]).mean(),
    meaning="What the true class <lacks>.",
    orientation="down",
    needs=("labels", "probabilities"),
    bounds=(0, 1),
)
RIGHT = CustomMetric(
    acronym="RIGHT",
    name="Right",
    function=lambda labels, decisions: (labels == decisions).mean(),
    meaning="How often it is right.",
    orientation="up",
    needs=("labels", "decisions"),
)


def found(custom=(LOSS, RIGHT), **given):
    given = {"probabilities": PROBABILITIES, "replicates": 200} | given
    return validate(recommending("AC", "BA"), LABELS, custom=custom, **given)


def test_estimates_and_intervals_are_those_of_the_same_resamples():
    loss, right = found().custom
    assert loss.estimate == pytest.approx(1 - PROBABILITIES[np.arange(120), LABELS].mean())
    reference = found().value("AC")
    assert right.number("estimate") == reference.estimate
    assert (right.low, right.high) == pytest.approx((reference.low, reference.high))
    assert loss.low < loss.estimate < loss.high
    assert (loss.range, loss.level, loss.replicates) == ((0, 1), 0.95, 200)
    assert right.range == (None, None)


def test_groups_are_drawn_whole():
    groups = np.arange(120) // 10
    result = found((RIGHT,), groups=groups)
    assert (result.custom[0].low, result.custom[0].high) == pytest.approx(
        (result.value("AC").low, result.value("AC").high)
    )


def test_invalid_outputs_count_as_the_worst_value():
    decisions = PROBABILITIES.argmax(axis=1)
    decisions[:12] = -1
    (loss,) = found((LOSS,), decisions=decisions).custom
    valid = (1 - PROBABILITIES[np.arange(120), LABELS])[12:].mean()
    assert loss.estimate == pytest.approx(0.9 * valid + 0.1)


def test_it_is_kept_in_the_document_and_shown_in_the_report():
    result = found()
    assert ValidationResult.from_json(result.to_json()) == result
    page = validation_html(result).partition('type="application/json"')[0]
    for part in ("Metrics of the user", "LOSS", "Mean &lt;loss&gt;", "What the true class &lt;lacks&gt;."):
        assert part in page
    assert "Metrics of the user" not in validation_html(found(()))


def test_models_are_not_ranked_by_it():
    models = {name: ModelOutputs(probabilities=PROBABILITIES) for name in "ab"}
    comparison = compare(recommending("AC"), LABELS, models, custom=(LOSS,), replicates=20)
    assert [one.label for one in comparison.rankings] == ["AC"]
    assert [result.custom[0].label for result in comparison.results.values()] == ["LOSS", "LOSS"]
    page = comparison_html(comparison).partition('type="application/json"')[0]
    assert page.count("Mean &lt;loss&gt;") == 2


def test_an_undefined_metric_says_so():
    card = {
        "acronym": "NONE",
        "name": "None",
        "meaning": "Nothing.",
        "orientation": "up",
        "needs": ("labels",),
    }
    (value,) = found((CustomMetric(**card, function=lambda **_: math.nan),)).custom
    assert (value.estimate, value.low, value.reason) == (None, None, "its function gave no number")


def test_a_metric_without_its_inputs():
    with pytest.raises(InvalidInputError, match="probabilities: LOSS needs probabilities"):
        found((LOSS,), probabilities=None, decisions=LABELS)
