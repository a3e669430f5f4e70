"""What comes and goes is told from what changes."""

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
    assert np.trace(found.scatter) == pytest.approx(np.trace(np.cov(means.T)) / 20, rel=0.5)


def test_a_change_that_stays_is_found_in_spite_of_jitter(three, fitted):
    rng = np.random.default_rng(4)
    drawn = [rng.dirichlet(60 * ONE) for _ in range(15)] + [rng.dirichlet(60 * OTHER) for _ in range(5)]
    found = segmentation(three, fitted, np.repeat(drawn, SAMPLES // 20, axis=0), rng)
    assert found.changes[-1].samples_ago == pytest.approx(1250, abs=150)


@pytest.mark.parametrize("share", [np.arange(SAMPLES) >= 4000, np.arange(SAMPLES) / SAMPLES])
def test_a_change_is_no_rhythm(three, fitted, share):
    found = segmentation(three, fitted, mixed(share * 1.0), np.random.default_rng(5))
    assert found.pattern is None
    assert found.changes
