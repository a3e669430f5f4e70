"""Means under a class mix: against independent formulas, and the coverage of their intervals."""

import numpy as np
import pytest
from scipy import stats

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.calibration_acceptance.class_mix_mean import ClassMixMean


def cases(labels, groups=None):
    labels = np.asarray(labels)
    return LabeledLogits(np.zeros((labels.size, int(labels.max()) + 1)), labels, groups)


def test_the_mean_of_one_class_has_students_interval():
    values = np.random.default_rng(0).normal(3, 2, size=12)
    data = cases([0] * 12 + [1])
    mean = ClassMixMean.of(np.append(values, 0.0), data, np.array([1.0, 0.0]))
    low, high = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    figure = mean.figure(-np.inf, np.inf)
    assert (figure.value, figure.low, figure.high) == pytest.approx((values.mean(), low, high))


def test_two_sets_are_compared_as_welch_does():
    generator = np.random.default_rng(1)
    left, right = generator.normal(0, 1, 20), generator.normal(0.5, 3, 8)
    one_class = np.array([1.0, 0.0])
    difference = ClassMixMean.of(np.append(left, 0), cases([0] * 20 + [1]), one_class) - ClassMixMean.of(
        np.append(right, 0), cases([0] * 8 + [1]), one_class
    )
    expected = stats.ttest_ind(left, right, equal_var=False)
    assert difference.freedom == pytest.approx(expected.df)
    assert difference.value / np.sqrt(difference.variance) == pytest.approx(expected.statistic)


def test_a_share_has_nearly_wilsons_interval():
    hits = np.repeat([1.0, 0.0], [180, 20])
    figure = ClassMixMean.of(hits, cases([0, 1] * 100), np.array([0.5, 0.5])).share_figure()
    expected = stats.binomtest(180, 200).proportion_ci(0.95, method="wilson")
    assert (figure.low, figure.high) == pytest.approx((expected.low, expected.high), abs=0.003)


@pytest.mark.parametrize("of", ["share_figure", "figure"])
def test_where_nothing_varies_the_interval_is_that_of_an_unseen_event(of):
    mean = ClassMixMean.of(np.ones(30), cases([0, 1] * 15), np.array([0.5, 0.5]))
    figure = mean.share_figure() if of == "share_figure" else mean.figure(0.0, 1.0)
    expected = stats.binomtest(30, 30).proportion_ci(0.95, method="exact")
    assert (figure.low, figure.high) == pytest.approx((expected.low, 1.0))


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(grouped):
    generator = np.random.default_rng(2)
    truth, held = 0.3 * 0.8 + 0.7 * 0.6, 0
    for _ in range(400):
        labels = np.arange(120) % 2
        groups = np.arange(120) // 6 if grouped else None  # twenty patients of six images
        level = generator.normal(0, 1.0, size=20)[np.arange(120) // 6] if grouped else 0.0
        noise = generator.normal(size=120)
        scale = np.sqrt(2) if grouped else 1.0
        hits = (stats.norm.cdf((noise + level) / scale) < np.where(labels == 0, 0.8, 0.6)).astype(float)
        figure = ClassMixMean.of(hits, cases(labels, groups), np.array([0.3, 0.7])).share_figure()
        held += figure.low <= truth <= figure.high
    assert 0.92 <= held / 400 <= 0.985
