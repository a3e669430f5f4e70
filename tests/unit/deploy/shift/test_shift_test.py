import numpy as np
import pytest
from scipy import stats

from lifelong_core.deploy import PrevalenceEstimate, ShiftTest
from lifelong_core.deploy.shift.shift_test import prevalence_shift_test, sequential_shift_test
from lifelong_core.values.errors import InvalidInputError


def estimate(prevalence, error, freedom=50.0):
    classes = len(prevalence)
    return PrevalenceEstimate(
        prevalence=prevalence,
        low=np.zeros(classes),
        high=np.ones(classes),
        confidence=0.95,
        n=100,
        effective_n=100.0,
        method="MLLS",
        covariance=np.eye(classes) * error**2,
        degrees_of_freedom=np.full(classes, freedom),
    )


def test_is_a_t_test_of_the_worst_class_times_their_number():
    test = prevalence_shift_test(estimate([0.5, 0.3, 0.2], 0.05), np.array([0.4, 0.35, 0.25]), 0.01)
    assert test.statistic == pytest.approx(2.0)
    assert test.p_value == pytest.approx(3 * 2 * stats.t.sf(2.0, 50))
    assert not test.rejected


def test_two_classes_are_one_test():
    test = prevalence_shift_test(estimate([0.6, 0.4], 0.05), np.array([0.5, 0.5]), 0.06)
    assert test.p_value == pytest.approx(2 * stats.t.sf(2.0, 50))
    assert test.rejected


def test_rejects_just_when_a_simultaneous_interval_excludes_the_assumed_prevalence():
    level = 0.01
    for distance in (0.10, 0.16):
        found = estimate([0.5, 0.3, 0.2], 0.05)
        assumed = np.array([0.5 - distance, 0.3 + distance, 0.2])
        low, high = found.interval(1 - level / 3)
        outside = bool(((assumed < low) | (assumed > high)).any())
        assert prevalence_shift_test(found, assumed, level).rejected == outside
    assert outside


def test_an_unknown_spread_never_rejects():
    test = prevalence_shift_test(estimate([1.0, 0.0], 0.0, freedom=0.0), np.array([0.0, 1.0]), 0.01)
    assert (test.statistic, test.p_value, test.rejected) == (0.0, 1.0, False)


def test_no_spread_at_all_gives_finite_figures():
    test = prevalence_shift_test(estimate([1.0, 0.0], 0.0), np.array([0.5, 0.5]), 0.01)
    assert np.isfinite(test.statistic)
    assert test.rejected


def test_survives_its_document():
    test = prevalence_shift_test(estimate([0.6, 0.4], 0.05), np.array([0.5, 0.5]), 0.01)
    assert ShiftTest.from_document(test.to_document()) == test


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("low", [0.0]),
        ("covariance", [[1.0]]),
        ("prevalence", [0.5, 0.6]),
        ("degrees_of_freedom", [np.nan, 1]),
    ],
)
def test_an_estimate_checks_its_arrays(field, value):
    document = estimate([0.6, 0.4], 0.05).to_document()
    with pytest.raises(InvalidInputError) as caught:
        PrevalenceEstimate.from_document({**document, field: value})
    assert caught.value.field == field


@pytest.mark.parametrize(("e_value", "alarm"), [(0.5, False), (999.9, False), (1000.1, True), (1e300, True)])
def test_an_alarm_needs_an_e_value_as_large_as_the_average_run_length(e_value, alarm):
    test = sequential_shift_test(np.log(e_value), 1000)
    assert (test.rejected, test.p_value, test.level) == (alarm, None, 0.001)
    assert ShiftTest.from_document(test.to_document()) == test
