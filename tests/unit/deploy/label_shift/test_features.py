import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from lifelong_core.deploy.label_shift.features import FeatureMap, column_order, cut_points, log_odds
from lifelong_core.deploy.labeled import LabeledLogits


def test_log_odds_are_those_of_softmax():
    scores = np.random.default_rng(0).normal(size=(50, 4)) * 5
    np.testing.assert_allclose(log_odds(scores), special.logit(special.softmax(scores, axis=1)), rtol=1e-8)


def test_log_odds_stay_exact_where_probabilities_are_0_or_1():
    np.testing.assert_allclose(log_odds(np.array([[1e4, 0.0, -1e4]])), [[1e4, -1e4, -2e4]])
    np.testing.assert_allclose(log_odds(np.array([[2.0, -3.0]])), [[5.0, -5.0]])


def test_cuts_are_quantiles_of_the_weights():
    values = np.random.default_rng(1).permutation(np.arange(1000.0))
    weights = np.where(values < 500, 3.0, 1.0)
    np.testing.assert_allclose(
        cut_points(values, weights, [0.25, 0.75, 0.875]), [166.5, 499.5, 749.5], atol=1
    )


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_cuts_lie_between_values_never_on_one(values):
    cuts = cut_points(np.array(values, dtype=float), np.ones(len(values)), [0.2, 0.5, 0.8])
    assert not set(cuts) & set(values)
    assert cuts.size <= max(len(set(values)) - 1, 0)
    assert (np.diff(cuts) > 0).all()


def test_values_that_differ_by_rounding_alone_are_not_cut_apart():
    assert cut_points(1 + 1e-9 * np.arange(10), np.ones(10), [0.5]).size == 0


def test_column_order_follows_the_columns():
    rows = np.random.default_rng(2).normal(size=(30, 5))
    order = np.array([3, 1, 4, 0, 2])
    assert column_order(rows[:, order]).tolist() == column_order(rows)[order].tolist()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [300, 200, 100])
    return LabeledLogits(3 * np.eye(3)[labels] + rng.normal(size=(600, 3)), labels)


def test_the_layout_is_steps_then_waves(data):
    features = FeatureMap.of(data)
    found = features(data.logits)
    names = features.score_columns
    assert [score.class_index for score in names] == [0, 1, 2, None, None]
    assert names[-1].columns.stop == features.steps
    steps, waves = np.split(found, [features.steps], axis=1)
    assert set(np.unique(steps[:, : names[-1].columns.start])) == {0.0, 1.0}
    cosines, sines = np.split(waves, 2, axis=1)
    np.testing.assert_allclose(cosines**2 + sines**2, 1)


def test_waves_have_the_gaussian_kernel_as_their_product(data):
    # Rahimi and Recht: the mean of cos(w.(x - y)) over frequencies is exp(-|x - y|^2 / (2 width^2)).
    features = FeatureMap.of(data)
    waves = features(data.logits)[:, features.steps :]
    rows = data.logits.astype(float)
    scaled = (rows - rows.mean(axis=1, keepdims=True) - features.middle) / features.spread
    squares = ((scaled[:, np.newaxis] - scaled) ** 2).sum(axis=2)
    pairs = np.triu_indices(600, 1)
    approximate = (waves @ waves.T / (waves.shape[1] / 2))[pairs]
    exact = np.exp(-squares / (2 * np.median(squares[pairs])))[pairs]
    assert np.abs(approximate - exact).mean() < 0.15
    assert np.corrcoef(approximate, exact)[0, 1] > 0.9


def test_cross_fitting_changes_the_distances_alone(data):
    features = FeatureMap.of(data)
    plain, fair = features(data.logits), features.of_calibration(data)
    far = features.score_columns[-1].columns
    same = np.ones(plain.shape[1], dtype=bool)
    same[far] = False
    np.testing.assert_array_equal(plain[:, same], fair[:, same])
    assert fair[:, far].mean() > plain[:, far].mean()
