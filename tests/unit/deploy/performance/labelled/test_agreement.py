import numpy as np
import pytest

from lifelong_core.deploy.performance.labelled.agreement import adjust_for_number, agreement
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.values.errors import InvalidInputError


def test_the_statistic_is_the_difference_over_its_standard_error():
    found = agreement(EstimatedMetric(0.9, 0.86, 0.94), EstimatedMetric(0.8, 0.74, 0.86), labelled=100)
    error = np.hypot(0.04, 0.06) / 1.959964
    assert found.difference == pytest.approx(-0.1)
    assert found.statistic == pytest.approx(-0.1 / error, rel=1e-5)
    assert found.p_value == pytest.approx(0.0066, abs=1e-4)
    assert found.verdict == "disagree"
    assert "differs from" in found.text


def test_few_labels_and_undefined_values_get_no_verdict():
    estimated = EstimatedMetric(0.9, 0.86, 0.94)
    few = agreement(estimated, EstimatedMetric(0.1, 0.05, 0.2), labelled=29)
    undefined = agreement(estimated, EstimatedMetric(*[float("nan")] * 3), labelled=1000)
    assert few.verdict == undefined.verdict == "too_few_labels"
    assert few.p_value is None
    assert "29" in few.text


def test_exactly_known_values_differ_or_do_not():
    same = agreement(EstimatedMetric(1, 1, 1), EstimatedMetric(1, 1, 1), labelled=30)
    other = agreement(EstimatedMetric(1, 1, 1), EstimatedMetric(0, 0, 0), labelled=30)
    assert (same.verdict, other.verdict) == ("agree", "disagree")


def test_the_level_is_kept_where_the_two_agree():
    rng = np.random.default_rng(0)
    disagree = 0
    for estimated, realised in rng.normal(0.7, [0.02, 0.04], size=(4000, 2)):
        found = agreement(
            EstimatedMetric(estimated, estimated - 0.0392, estimated + 0.0392),
            EstimatedMetric(realised, realised - 0.0784, realised + 0.0784),
            labelled=100,
        )
        disagree += found.verdict == "disagree"
    assert disagree / 4000 == pytest.approx(0.05, abs=0.014)


def test_many_comparisons_are_judged_by_holm():
    estimated = EstimatedMetric(0.9, 0.86, 0.94)
    realised = (0.895, 0.8, 0.815, 0.7, 0.88)
    single = [
        agreement(estimated, EstimatedMetric(value, value - 0.06, value + 0.06), labelled=100)
        for value in realised
    ]
    skipped = agreement(estimated, estimated, labelled=3)
    found = adjust_for_number([*single, skipped])
    # transcription of Holm's step-down procedure
    values = np.array([one.p_value for one in single])
    order = np.argsort(values)
    adjusted = np.maximum.accumulate(np.minimum(values[order] * np.arange(5, 0, -1), 1))
    assert np.array([one.p_value for one in found[:5]])[order] == pytest.approx(adjusted)
    assert [one.verdict for one in single] == ["agree", "disagree", "disagree", "disagree", "agree"]
    assert [one.verdict for one in found] == [
        "agree",
        "disagree",
        "agree",
        "disagree",
        "agree",
        "too_few_labels",
    ]
    assert "5 comparisons" in found[2].text


def test_errors_name_the_field():
    same = EstimatedMetric(0.5, 0.4, 0.6)
    with pytest.raises(InvalidInputError, match="labelled"):
        agreement(same, same, labelled=-1)
    with pytest.raises(InvalidInputError, match="level"):
        agreement(same, same, labelled=50, level=1)
