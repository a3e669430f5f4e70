import math

import numpy as np
import pytest
from scipy import optimize

from lifelong_core.metrics import calibration_slope, observed_expected_ratio
from lifelong_core.metrics.calibration.slope import ratio_of_class, slope_of_class
from tests.unit.metrics.labelled_cases import simulated


def slope_by_definition(hits, scores):
    """Maximum likelihood of a + b logit(p), by a general optimiser."""
    logits = np.log(scores / (1 - scores))

    def loss(parameters):
        values = parameters[0] + parameters[1] * logits
        return (np.logaddexp(0, values) - hits * values).sum()

    return optimize.minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-8}).x[1]


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_slope_is_that_of_a_logistic_regression(sharpness):
    labels, probabilities = simulated(150, sharpness=sharpness)
    expected = [slope_by_definition(labels == k, probabilities[:, k]) for k in range(3)]
    np.testing.assert_allclose(calibration_slope(labels, probabilities), expected, rtol=1e-4)


def test_scikit_learn_finds_the_same_slope():
    from sklearn.linear_model import LogisticRegression

    labels, probabilities = simulated(400, sharpness=2.0)
    for k, found in enumerate(calibration_slope(labels, probabilities)):
        logits = np.log(probabilities[:, k] / (1 - probabilities[:, k]))
        model = LogisticRegression(C=1e10, tol=1e-8, max_iter=1000).fit(logits[:, np.newaxis], labels == k)
        assert found == pytest.approx(model.coef_[0, 0], rel=1e-3)


def test_scaled_logits_divide_the_slope():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=5000) * 2
    labels = (rng.random(5000) < 1 / (1 + np.exp(-logits))).astype(int)
    for factor in (0.5, 1.0, 2.0):
        positive = 1 / (1 + np.exp(-factor * logits))
        slopes = calibration_slope(labels, np.stack([1 - positive, positive], axis=1))
        np.testing.assert_allclose(slopes, 1 / factor, rtol=0.08)


def test_separated_classes_have_an_infinite_slope_and_one_probability_none():
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.1, 0.9]])
    assert calibration_slope([0, 0, 1, 1], probabilities).tolist() == [math.inf, math.inf]
    assert calibration_slope([1, 1, 0, 0], probabilities).tolist() == [-math.inf, -math.inf]
    assert np.isnan(calibration_slope([0, 1], [[0.5, 0.5]] * 2)).all()
    assert np.isnan(calibration_slope([0, 0], [[0.5, 0.5], [0.4, 0.6]])).all()
    assert np.isfinite(calibration_slope([0, 1, 1, 0], [[1.0, 0.0], [1.0, 0.0], [0, 1], [0, 1]])).all()


def test_the_ratio_counts():
    labels, probabilities = simulated(60)
    expected = np.bincount(labels, minlength=3) / probabilities.sum(axis=0)
    np.testing.assert_allclose(observed_expected_ratio(labels, probabilities), expected)
    of_never = observed_expected_ratio([0, 0], [[1.0, 0.0], [1.0, 0.0]])
    assert of_never[0] == 1
    assert math.isnan(of_never[1])
    assert observed_expected_ratio([0, 1], [[1.0, 0.0], [1.0, 0.0]])[1] == math.inf


@pytest.mark.parametrize("metric", [calibration_slope, observed_expected_ratio])
def test_without_any_case_both_are_undefined(metric):
    assert np.isnan(metric([], np.empty((0, 2)))).all()


def test_the_influences_give_the_spread_of_resampled_data():
    rng = np.random.default_rng(2)
    labels, probabilities = simulated(600, sharpness=1.5)
    scores = probabilities[:, 1]
    for of_class, transform in ((slope_of_class, float), (ratio_of_class, np.log)):
        found = of_class(scores, labels == 1)
        assert found.influences.sum() == pytest.approx(0, abs=1e-6)
        drawn = []
        for _ in range(300):
            rows = rng.integers(600, size=600)
            drawn.append(transform(of_class(scores[rows], labels[rows] == 1).value))
        assert np.sqrt(np.square(found.influences).sum()) == pytest.approx(np.std(drawn), rel=0.12)


def test_without_a_case_of_the_class_there_is_no_influence():
    scores = np.array([0.2, 0.7])
    for of_class in (slope_of_class, ratio_of_class):
        assert np.isnan(of_class(scores, np.array([False, False])).influences).all()
