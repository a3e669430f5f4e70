"""A cycle follows the last change of the prevalence in its window."""

from datetime import UTC, datetime

import numpy as np
import pytest

from lifelong_core.deploy import AdaptationPolicy, AdaptationReport, adapt, fit_head, quantifier
from lifelong_core.deploy.shift.change_points import ChangePoint
from lifelong_core.values.errors import InvalidInputError

COSTS = 1 - np.eye(3)
BEFORE, AFTER = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])
POLICY = AdaptationPolicy()
START = 1_750_000_000.0


@pytest.fixture(scope="module")
def three(population):
    return population(3, 1.5)


@pytest.fixture(scope="module")
def fitted(three):
    return quantifier("MLLS").fit(three.draw([300, 300, 300], np.random.default_rng(0)))


@pytest.fixture(scope="module")
def head(fitted):
    return fit_head(fitted.calibration, COSTS, target_prevalence=BEFORE)


@pytest.fixture(scope="module")
def changed(three):
    rng = np.random.default_rng(1)
    return np.vstack([three.window(BEFORE, 4000, rng), three.window(AFTER, 1000, rng)])


def codes(report):
    return [reason.code for reason in report.reasons]


def test_the_first_cycle_after_a_change_is_right(fitted, head, changed):
    report = adapt(fitted, changed, head, POLICY)
    diluted = adapt(fitted, changed, head, AdaptationPolicy(change_level=0))
    assert np.abs(diluted.prevalence.prevalence - AFTER).sum() > 0.6
    assert np.abs(report.prevalence.prevalence - AFTER).sum() < 0.12
    assert (report.outcome, codes(report)[:2]) == ("swap", ["prevalence_changed", "prevalence_shifted"])
    assert (report.samples, report.prevalence.n) == (5000, report.change_points[-1].samples_ago)
    assert diluted.change_points == ()
    assert AdaptationReport.from_json(report.to_json()) == report


def test_a_change_is_dated(fitted, head, changed):
    times = START + 60 * np.arange(5000)
    (change,) = adapt(fitted, changed, head, POLICY, times=times).change_points
    after = 5000 - change.samples_ago
    assert change.changed_at == datetime.fromtimestamp(times[after], UTC)
    assert ChangePoint.from_document(change.to_document()) == change


def test_few_samples_since_the_change_are_waited_for(fitted, head, changed):
    """The samples before it say nothing of what holds now, so the head stays until enough have come."""
    report = adapt(fitted, changed[:4130], head, POLICY)
    assert (report.outcome, codes(report)) == ("keep", ["prevalence_changed", "window_too_small"])
    assert report.prevalence.n < 200


def test_summaries_in_order_of_time_are_followed(fitted, head, changed):
    parts = [fitted.summarize(changed[begin : begin + 500]) for begin in range(0, 5000, 500)]
    times = START + 3600 * np.arange(10)
    report = adapt(fitted, parts, head, POLICY, times=times)
    (change,) = report.change_points
    assert (change.samples_ago, change.changed_at) == (1000, datetime.fromtimestamp(times[8], UTC))
    assert report.prevalence == fitted.estimate(parts[8] + parts[9])
    assert (report.samples, report.outcome) == (5000, "swap")
    # One summary has no order.
    assert adapt(fitted, sum(parts), head, POLICY).change_points == ()


def test_the_interval_counts_the_doubt_about_a_change(three, fitted, head):
    """Where a change is small, when it was is not known well, nor whether it was."""
    rng = np.random.default_rng(2)
    small = BEFORE + (AFTER - BEFORE) * 0.25
    window = np.vstack([three.window(BEFORE, 3000, rng), three.window(small, 1500, rng)])
    report = adapt(fitted, window, head, POLICY)
    (change,) = report.change_points
    plain = fitted.estimate(window[4500 - change.samples_ago :])
    assert np.array_equal(report.prevalence.prevalence, plain.prevalence)
    assert (report.prevalence.high - report.prevalence.low > plain.high - plain.low).all()


def test_groups_of_what_came_before_a_change_do_not_count(fitted, head, changed):
    keys = np.concatenate([np.arange(4000), 4000 + np.arange(1000) // 4])
    report = adapt(fitted, changed, head, POLICY, groups=keys)
    ago = report.change_points[-1].samples_ago
    alone = fitted.estimate(changed[-ago:], groups=keys[-ago:])
    assert np.array_equal(report.prevalence.prevalence, alone.prevalence)
    assert report.prevalence.effective_n == alone.effective_n


@pytest.mark.parametrize(
    "times", [np.arange(4999.0), -1 - np.zeros(5000), np.arange(5000.0)[::-1], np.full(5000, np.nan)]
)
def test_times_that_do_not_fit_are_refused(fitted, head, changed, times):
    report = adapt(fitted, changed, head, POLICY, times=times)
    assert (report.outcome, codes(report)) == ("refuse", ["window_invalid"])
    assert "times" in report.reasons[0].text


def test_a_policy_says_how_often_a_change_may_be_false():
    with pytest.raises(InvalidInputError, match="change_level"):
        AdaptationPolicy(change_level=-0.1)
