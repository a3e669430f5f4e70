"""Jitter and rhythms are distinguished from lasting changes."""

import numpy as np
import pytest

from lifelong_core.deploy import quantifier
from lifelong_core.deploy.shift.change_points import find_change_points
from lifelong_core.deploy.shift.ordered_window import OrderedWindow

HOUR = 3600.0
SAMPLES = 5000
TIMES = 1.7e9 + np.arange(SAMPLES) * (21 * 24 * HOUR / SAMPLES)
ONE, OTHER = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.3, 0.4])


@pytest.fixture(scope="module")
def three(population):
    return population(3, 2.0)


@pytest.fixture(scope="module")
def fitted(three):
    return quantifier("MLLS").fit(three.draw([400, 400, 400], np.random.default_rng(0)))


def segmentation(three, fitted, prevalences, rng, times=TIMES):
    """Of samples that are drawn one by one from their prevalences, (N, C)."""
    labels = (rng.random(SAMPLES)[:, np.newaxis] > np.cumsum(prevalences, axis=1)).sum(axis=1)
    rows = three.logits(np.minimum(labels, 2), rng)
    return find_change_points(OrderedWindow.of_rows(fitted, rows, None), level=0.005, times=times)


def mixed(share):
    return ONE + (OTHER - ONE) * share[:, np.newaxis]


def test_day_and_night(three, fitted):
    hour = TIMES / HOUR % 24
    found = segmentation(three, fitted, mixed(((hour > 7) & (hour < 19)) * 1.0), np.random.default_rng(1))
    assert (found.pattern, found.changes) == ("time of day", ())


def test_a_change_that_stays_is_found_in_spite_of_a_rhythm(three, fitted):
    """18 of 20 were found; in 5 of them the change was so much larger than the rhythm that this was not named."""
    hour, late = TIMES / HOUR % 24, np.arange(SAMPLES) >= 3500
    share = 0.6 * ((hour > 7) & (hour < 19)) + 0.4 * late
    found = [segmentation(three, fitted, mixed(share), np.random.default_rng(seed)) for seed in range(10)]
    assert sum(one.pattern == "time of day" for one in found) >= 4
    last = [one.changes[-1] for one in found if one.changes]
    assert sum(change.low <= 1500 <= change.high for change in last) >= 7


def test_weekdays_and_weekends(three, fitted):
    day = TIMES // (24 * HOUR) % 7
    found = segmentation(three, fitted, mixed((day >= 5) * 1.0), np.random.default_rng(2))
    assert (found.pattern, found.changes) == ("day of week", ())


def test_without_times_there_is_no_rhythm(three, fitted):
    hour = TIMES / HOUR % 24
    share = ((hour > 7) & (hour < 19)) * 1.0
    found = segmentation(three, fitted, mixed(share), np.random.default_rng(1), times=None)
    assert found.pattern in (None, "jitter")


def test_a_mix_that_jitters_has_no_change_but_a_wider_interval(three, fitted):
    rng = np.random.default_rng(3)
    prevalences = np.repeat([rng.dirichlet(10 * ONE) for _ in range(20)], SAMPLES // 20, axis=0)
    found = segmentation(three, fitted, prevalences, rng)
    assert (found.pattern, found.changes) == ("jitter", ())
    means = prevalences[:: SAMPLES // 20]
    # Buckets that are alike count as one segment.
    assert 1 < np.trace(found.scatter) / (np.trace(np.cov(means.T)) / 20) < 2


def test_a_change_that_stays_is_found_in_spite_of_jitter(three, fitted):
    """Four in five were found of twenty; the interval counts the jitter besides."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        before = [rng.dirichlet(15 * ONE) for _ in range(12)]
        after = [rng.dirichlet([1.5, 3, 10.5]) for _ in range(8)]
        one = segmentation(three, fitted, np.repeat(before + after, SAMPLES // 20, axis=0), rng)
        if one.pattern == "jitter" and one.changes:
            found += abs(one.changes[-1].samples_ago - 2000) < 150
            assert np.trace(one.scatter) > 0
    assert found >= 6


def test_a_long_last_segment_jitters_no_more(three, fitted):
    share = np.concatenate([np.repeat([0.0, 1, 0, 1], 300), np.zeros(SAMPLES - 1200)])
    found = segmentation(three, fitted, mixed(share), np.random.default_rng(6))
    assert found.pattern is None
    assert found.changes[-1].samples_ago == pytest.approx(SAMPLES - 1200, abs=100)


@pytest.mark.parametrize("share", [np.arange(SAMPLES) >= 4000, np.arange(SAMPLES) / SAMPLES])
def test_a_change_is_no_rhythm(three, fitted, share):
    found = segmentation(three, fitted, mixed(share * 1.0), np.random.default_rng(5))
    assert found.pattern is None
    assert found.changes
