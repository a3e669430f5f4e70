import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.design import AcceptanceThreshold, MetricValue, check_thresholds
from lifelong_core.design.validation.acceptance import ROUNDING, all_passed, apply_thresholds
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import metric, recommending


def value(label="BA", orientation="up", **given):
    fields = {
        "metric": label, "label": label, "value_of": "all_classes", "estimate": 0.8, "low": 0.7, "high": 0.9,
        "reason": None, "level": 0.95, "method": "bca", "replicates": 100, "orientation": orientation,
        "range": (0.0, 1.0),
    }  # fmt: skip
    return MetricValue(**{**fields, **given})


def passed(threshold, *values):
    (outcome,) = apply_thresholds([threshold], values or [value()])
    return outcome.passed


def asked(number, by, label="BA", **given):
    return AcceptanceThreshold(metric=label, value=number, by=by, **given)


@pytest.mark.parametrize(
    ("orientation", "by", "edge", "worse"),
    [
        ("up", "estimate", 0.8, 0.8000001),
        ("up", "interval", 0.7, 0.7000001),
        ("down", "estimate", 0.8, 0.7999999),
        ("down", "interval", 0.9, 0.8999999),
    ],
)
def test_a_threshold_is_reached_at_its_edge_and_not_beyond(orientation, by, edge, worse):
    assert passed(asked(edge, by), value(orientation=orientation)) is True
    assert passed(asked(worse, by), value(orientation=orientation)) is False


@given(st.floats(-10, 10), st.floats(-10, 10), st.booleans())
def test_a_pass_by_the_interval_is_one_by_the_estimate(estimate, threshold, is_up):
    one = value(orientation="up" if is_up else "down", estimate=estimate, low=estimate - 1, high=estimate + 1)
    if passed(asked(threshold, "interval"), one):
        assert passed(asked(threshold, "estimate"), one)
    is_better = estimate >= threshold if is_up else estimate <= threshold
    is_equal = math.isclose(estimate, threshold, rel_tol=ROUNDING)
    assert passed(asked(threshold, "estimate"), one) is (is_better or is_equal)


def test_a_value_that_rounding_puts_beside_its_threshold_reaches_it():
    (outcome,) = apply_thresholds(
        [asked(0.9, "estimate")], [value(estimate=0.8999999999999999, low=0.8, high=0.95)]
    )
    assert outcome.passed is True
    assert outcome.why == "The estimate, 0.9, reaches 0.9."


def test_nothing_undefined_passes():
    undefined = value(estimate=None, low=None, high=None, reason="no reference sample of class 1")
    (outcome,) = apply_thresholds([asked(-1, "estimate")], [undefined])
    assert (outcome.passed, outcome.value) == (None, None)
    assert "no reference sample of class 1" in outcome.why
    without_interval = value(low=None, high=None, notes=("Nothing varied.",))
    (outcome,) = apply_thresholds([asked(0.1, "interval")], [without_interval])
    assert outcome.passed is None
    assert "Nothing varied." in outcome.why
    assert passed(asked(0.1, "estimate"), without_interval) is True


def test_what_is_infinite_is_compared_as_such():
    endless = value("LR+", estimate=None, high=None, low=3.0, infinite={"estimate": 1, "high": 1})
    assert passed(asked(10, "estimate", "LR+"), endless) is True
    assert passed(asked(10, "interval", "LR+"), endless) is False
    assert passed(asked(10, "estimate", "LR+"), endless.model_copy(update={"orientation": "down"})) is False


def test_without_a_class_the_first_value_counts_which_sums_the_metric_up():
    values = [value("TPR", value_of="mean"), value("TPR", value_of="one_class", class_index=1, low=0.2)]
    assert passed(asked(0.5, "interval", "TPR"), *values) is True
    assert passed(asked(0.5, "interval", "TPR", class_index=1), *values) is False


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [([0.1, 0.2], True), ([0.1, 0.99], False), ([0.1, None], None), ([0.99, None], False), ([], None)],
)
def test_one_failure_decides_and_one_doubt_leaves_it_open(verdicts, together):
    undefined = value("AC", estimate=None, low=None, high=None, reason="none")
    thresholds = [asked(one or 0, "interval", "AC" if one is None else "BA") for one in verdicts]
    assert all_passed(apply_thresholds(thresholds, [value(), undefined])) is together


RECOMMENDED = recommending(
    "BA", metric("TPR"), metric("TNR", parameters={"target": ("TPR", 0.95)}, target_class=1)
)


@pytest.mark.parametrize(
    "threshold",
    [
        asked(0.5, "interval"),
        asked(0.5, "interval", "TPR", class_index=2),
        asked(0.5, "estimate", "TNR@(TPR=0.95)"),
        asked(0.5, "interval", "TNR@(TPR=0.95)", class_index=1),
    ],
)
def test_thresholds_for_recommended_metrics_fit(threshold):
    check_thresholds(RECOMMENDED, [threshold])


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ([asked(0.5, "interval", "TNR@(TPR=0.9)")], "Did you mean TNR@(TPR=0.95)"),
        ([asked(0.5, "interval", "something else")], "Recommended: BA, TPR"),
        ([asked(0.5, "interval", class_index=0)], "it is one number for all"),
        ([asked(0.5, "interval", "TPR", class_index=3)], "its classes are 0, 1, 2"),
        ([asked(0.5, "interval", "TNR@(TPR=0.95)", class_index=0)], "its classes are 1"),
        ([asked(0.5, "interval"), asked(0.6, "interval")], "two thresholds for BA"),
    ],
)
def test_thresholds_that_do_not_fit_are_explained(thresholds, words):
    with pytest.raises(InvalidInputError) as error:
        check_thresholds(RECOMMENDED, thresholds)
    assert words in str(error.value)
    assert error.value.field == "thresholds"


def test_the_level_of_the_interval_is_not_rounded():
    (outcome,) = apply_thresholds([asked(0.5, "interval")], [value(level=0.999)])
    assert "of the 99.9 % interval" in outcome.why


@pytest.mark.parametrize(
    ("orientation", "estimate", "said"),
    [
        ("up", 0.9499996, "The estimate, 0.9499996, is below 0.95."),
        ("up", 0.94996, "The estimate, 0.94996, is below 0.95."),
        ("up", 0.95, "The estimate, 0.95, reaches 0.95."),
        ("down", 0.9500004, "The estimate, 0.9500004, is above 0.95."),
        ("up", 0.87654321, "The estimate, 0.8765, is below 0.95."),
    ],
)
def test_a_near_miss_is_seen_to_be_one(orientation, estimate, said):
    (outcome,) = apply_thresholds(
        [asked(0.95, "estimate")], [value(orientation=orientation, estimate=estimate, low=0.5, high=1.0)]
    )
    assert outcome.why == said
