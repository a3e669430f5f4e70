import numpy as np
import pytest

from lifelong_core.deploy.label_shift.drift import DriftDetectors, remove_directions, tangents
from lifelong_core.deploy.label_shift.features import FeatureMap
from lifelong_core.deploy.labeled import LabeledLogits


def drawn(counts, rng):
    labels = np.repeat([0, 1, 2], counts)
    return LabeledLogits(3 * np.eye(3)[labels] + rng.normal(size=(labels.size, 3)), labels)


@pytest.fixture(scope="module")
def fitted():
    data = drawn([500, 400, 300], np.random.default_rng(0))
    features = FeatureMap.of(data)
    return data, features, DriftDetectors.of(data, features, features.of_calibration(data))


def means(fitted, data):
    _, features, detectors = fitted
    return (features(data.logits) - detectors.middle) @ detectors.weights.T


def test_no_change_of_the_mix_moves_a_detector_much(fitted):
    fresh = drawn([20_000, 20_000, 20_000], np.random.default_rng(1))
    values = means(fitted, fresh)
    by_class = np.array([values[fresh.labels == k].mean(axis=0) for k in range(3)])
    # In standard deviations of a sample; what is left is the sampling error of the calibration set.
    assert np.abs(by_class - by_class.mean(axis=0)).max() / values.std(axis=0).min() < 0.35


def test_its_own_drift_moves_a_detector_by_its_effect(fitted):
    _, _, detectors = fitted
    rng = np.random.default_rng(2)
    before = drawn([5000, 5000, 5000], rng)
    for index, drift in enumerate(detectors.drifts):
        if drift.kind == "moved_logit":
            moved = before.logits + np.eye(3)[drift.class_index] * drift.step
        elif drift.kind == "scaled_logits":
            moved = before.logits * np.exp(drift.step)
        else:
            continue
        after = LabeledLogits(moved, before.labels)
        change = (means(fitted, after) - means(fitted, before)).mean(axis=0)[index]
        assert change == pytest.approx(detectors.effects[index], rel=0.4)
        assert change > 0


def test_calibration_values_are_those_of_detectors_that_have_not_seen_them(fitted):
    data, features, detectors = fitted
    seen = (features.of_calibration(data) - detectors.middle) @ detectors.weights.T
    assert not np.allclose(detectors.values, seen)
    correlations = [np.corrcoef(detectors.values[:, j], seen[:, j])[0, 1] for j in range(seen.shape[1])]
    assert min(correlations) > 0.8


def test_there_are_none_where_cross_fitting_is_impossible():
    data = drawn([300, 300, 1], np.random.default_rng(3))
    features = FeatureMap.of(data)
    detectors = DriftDetectors.of(data, features, features.of_calibration(data))
    assert detectors.drifts == ()
    assert detectors.values.shape == (601, 0)


def test_without_leaves_what_is_orthogonal_to_the_directions():
    rng = np.random.default_rng(4)
    class_means, vectors = rng.normal(size=(4, 7)), rng.normal(size=(5, 7))
    left = remove_directions(tangents(class_means), np.eye(7), vectors)
    np.testing.assert_allclose(left @ tangents(class_means).T, 0, atol=1e-12)
    np.testing.assert_allclose(remove_directions(tangents(class_means), np.eye(7), left), left, atol=1e-12)


def test_groups_larger_than_what_is_made_to_drift_are_no_trouble():
    rng = np.random.default_rng(5)
    data = drawn([900, 900, 900], rng)
    # The drifting samples, the first of each class, are all of a few groups.
    grouped = LabeledLogits(data.logits, data.labels, np.tile(np.repeat(np.arange(12), 75), 3))
    features = FeatureMap.of(grouped)
    detectors = DriftDetectors.of(grouped, features, features.of_calibration(grouped))
    assert np.isfinite(detectors.effects).all()
    assert (detectors.effects[:4] > 0).all()
