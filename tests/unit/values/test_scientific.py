"""Quantiles have one convention: the probability below them. Their callers need the right tail."""

from statistics import NormalDist

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.deploy.label_shift.assumption_test import AssumptionReference, assumption_test
from lifelong_core.deploy.shift.change_points import find_change_points
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.design.report.figures import share_interval
from lifelong_core.metrics import Bootstrap
from lifelong_core.values.scientific import normal_probability, normal_quantile, t_probability, t_quantile

PROBABILITIES = [1e-300, 1e-6, 0.025, 0.5, 0.975, 1 - 1e-9]


def draw(counts, rng):
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return 3 * np.eye(len(counts))[labels] + rng.normal(size=(labels.size, len(counts))), labels


def test_quantiles_are_the_inverse_of_the_probability_below_them():
    expected = [NormalDist().inv_cdf(probability) for probability in PROBABILITIES]
    assert normal_quantile(PROBABILITIES) == pytest.approx(expected, abs=1e-8)
    assert normal_probability(normal_quantile(PROBABILITIES)) == pytest.approx(PROBABILITIES)
    assert t_probability(5, t_quantile(5, 0.975)) == pytest.approx(0.975)


def test_the_assumption_statistic_is_large_where_the_p_value_is_small():
    rng = np.random.default_rng(0)
    reference = AssumptionReference.of(LabeledLogits(*draw((400, 400, 400), rng)))
    window, _ = draw((850, 100, 50), rng)
    for scale in (0.85, 0.9, 0.95):
        result = assumption_test(reference, reference.features(scale * window).mean(axis=0), n=1000)
        expected = max(0.0, -NormalDist().inv_cdf(result.p_value))
        assert result.statistic == pytest.approx(expected, abs=1e-6)


def test_the_interval_of_a_change_holds_its_size():
    rng = np.random.default_rng(0)
    fitted = quantifier("MLLS").fit(LabeledLogits(*draw((300, 300), rng)))
    rows = np.vstack([draw(counts, rng)[0] for counts in ((1200, 800), (500, 500))])
    (change,) = find_change_points(OrderedWindow.of_rows(fitted, rows, None), level=0.005).changes
    assert change.size_low < change.size < change.size_high


def test_intervals_of_a_share_and_of_resamples_hold_their_estimate():
    low, high = share_interval(0.5, 100, 0.95)
    assert low < 0.5 < high
    interval = Bootstrap(np.array(50.0), np.arange(101.0), ()).interval(level=0.75, method="bca")
    assert 0 < interval.low < 50 < interval.high < 100
