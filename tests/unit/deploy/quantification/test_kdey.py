"""Quantifiers that match distributions: their optima, and their parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy.spatial.distance import cdist
from scipy.special import softmax

from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.deploy.numerics.simplex import simplex_minimum
from lifelong_core.deploy.quantification.hdy import LEAST_DISTANCE, MeanHellingerDistance
from lifelong_core.deploy.quantification.kdey import ClassKernels, Points, kernel_chunks
from lifelong_core.deploy.quantification.kdey_divergence import SampledHellingerDistance, reference_sample
from lifelong_core.values.errors import InvalidInputError

seeds = st.integers(0, 10_000)


def histograms(seed, classes, channels=3, bins=6):
    rng = np.random.default_rng(seed)
    components = np.moveaxis(rng.dirichlet(np.full(bins, 0.5), size=(classes, channels)), 0, -1)
    truth = rng.dirichlet(np.full(classes, 0.5))
    target = np.array([rng.multinomial(60, row / row.sum()) / 60 for row in components @ truth])
    return MeanHellingerDistance(target, components)


def densities(seed, classes, points=60):
    rng = np.random.default_rng(seed)
    components = rng.gamma(0.5, size=(points, classes)) + 1e-15
    return SampledHellingerDistance(rng.gamma(0.5, size=points), components)


def best_of_many_starts(loss, classes, seed):
    """What a general solver finds from several starts, none of which it has from us."""
    starts = np.random.default_rng(seed).dirichlet(np.ones(classes), size=4)
    found = [
        optimize.minimize(
            lambda p: loss.value(np.clip(p, 1e-12, None)),
            start,
            method="SLSQP",
            bounds=[(0, 1)] * classes,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-12},
        )
        for start in starts
    ]
    return min(result.fun for result in found if abs(result.x.sum() - 1) < 1e-9)


@pytest.mark.parametrize("make", [histograms, densities])
@given(seed=seeds, classes=st.integers(2, 6))
def test_no_solver_finds_a_lower_loss(make, seed, classes):
    loss = make(seed, classes)
    weights = simplex_minimum(loss, np.full(classes, 1 / classes))
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert loss.value(weights) <= best_of_many_starts(loss, classes, seed) + 1e-7


@pytest.mark.parametrize("make", [histograms, densities])
def test_the_gradient_is_that_of_the_value(make):
    loss, weights, step = make(1, 4), np.array([0.1, 0.2, 0.3, 0.4]), 1e-6
    gradient, _ = loss.quadratic_model(weights)
    numeric = [
        (loss.value(weights + step * axis) - loss.value(weights - step * axis)) / (2 * step)
        for axis in np.eye(4)
    ]
    assert gradient == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_a_perfect_match_is_found():
    components = np.moveaxis(np.array([[[0.7, 0.3, 0.0]], [[0.1, 0.3, 0.6]]]), 0, -1)
    truth = np.array([0.25, 0.75])
    loss = MeanHellingerDistance(components @ truth, components)
    weights = simplex_minimum(loss, np.array([0.5, 0.5]))
    assert weights == pytest.approx(truth, abs=1e-3)
    assert loss.value(weights) < 2 * LEAST_DISTANCE


def task(classes=3, samples=200, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=samples)])
    logits = 2 * np.eye(classes)[labels] + rng.normal(size=(labels.size, classes))
    return LabeledLogits(logits, labels)


def gaussian(places, centres, bandwidth):
    return np.exp(-(cdist(places, centres) ** 2) / (2 * bandwidth**2))


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 1.0])
def test_kernels_are_gaussian_up_to_the_factor_that_they_tell(bandwidth):
    rng = np.random.default_rng(0)
    places, centres = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4), 30)
    expected = gaussian(places, centres, bandwidth)
    for rows, kernels, scale in kernel_chunks(places, centres, bandwidth):
        assert kernels * np.exp(scale)[:, np.newaxis] == pytest.approx(expected[rows], rel=1e-3, abs=1e-30)
        assert kernels.max(axis=1) == pytest.approx(1)


def test_kernels_come_in_chunks_that_cover_all_places(monkeypatch):
    monkeypatch.setattr("lifelong_core.deploy.quantification.kdey._CHUNK", 70)
    places = np.random.default_rng(0).dirichlet(np.ones(3), 25)
    chunks = list(kernel_chunks(places, places[:10], 0.1))
    assert [rows.start for rows, _, _ in chunks] == [0, 7, 14, 21]
    stacked = np.vstack([kernels * np.exp(scale)[:, np.newaxis] for _, kernels, scale in chunks])
    assert stacked == pytest.approx(gaussian(places, places[:10], 0.1), rel=1e-3)


def test_class_densities_are_means_of_kernels():
    data = task()
    probabilities = softmax(data.logits.astype(float), axis=1)
    kernels = ClassKernels.at(probabilities, data, 0.1)
    found, scale = kernels.densities(probabilities[:40])
    for label in range(3):
        expected = gaussian(probabilities[:40], probabilities[data.labels == label], 0.1).mean(axis=1)
        # Merged centres stand for up to 1 / 50 of a bandwidth around them.
        assert found[:, label] * np.exp(scale) == pytest.approx(expected, rel=2e-3)
    assert (kernels.class_of[kernels.centre_of] == data.labels).all()


def test_merged_points_keep_counts_and_means():
    values = np.array([[0.1, 0.9], [0.1001, 0.8999], [0.5, 0.5], [0.1, 0.9]])
    points = Points.merge(values, np.array([1.0, 2.0, 5.0, 1.0]), 0.1)
    assert sorted(points.counts.tolist()) == [4, 5]
    assert points.counts @ points.places == pytest.approx(np.array([1.0, 2.0, 5.0, 1.0]) @ values)
    assert points.place_of[0] == points.place_of[1] == points.place_of[3] != points.place_of[2]


def test_kdeycs_maximises_the_cosine_of_the_densities():
    data, window = task(), task(seed=1).logits
    fitted = quantifier("KDEyCS").fit(data)
    own, seen = (softmax(rows.astype(float), axis=1) for rows in (data.logits, window))
    members = np.eye(3)[data.labels] / data.counts
    products = members.T @ gaussian(own, own, 0.1 * np.sqrt(2)) @ members
    target = (gaussian(seen, own, 0.1 * np.sqrt(2)) @ members).mean(axis=0)

    def cosine(p):
        return target @ p / np.sqrt(p @ products @ p)

    best = cosine(fitted.prevalence(window))
    rivals = np.random.default_rng(0).dirichlet(np.ones(3), 5000)
    assert best >= max(cosine(p) for p in rivals) - 1e-6


def test_the_reference_sample_follows_the_classes():
    data = task()
    probabilities = softmax(data.logits.astype(float), axis=1)
    points = reference_sample(probabilities, data, 0.1, 3000, 0)
    assert points.shape == (3000, 3)
    expected = np.mean([probabilities[data.labels == k].mean(axis=0) for k in range(3)], axis=0)
    assert points.mean(axis=0) == pytest.approx(expected, abs=0.01)
    assert points.tolist() != reference_sample(probabilities, data, 0.1, 3000, 1).tolist()
    order = np.array([2, 0, 1])
    renamed = LabeledLogits(data.logits[:, order], np.argsort(order)[data.labels])
    again = reference_sample(probabilities[:, order], renamed, 0.1, 3000, 0)
    assert again == pytest.approx(points[:, order])


def test_fewer_trials_than_classes_still_give_each_class_a_point():
    data = task(classes=5)
    prevalence = quantifier("KDEyHD", trials=2).fit(data).prevalence(data.logits[:20])
    assert prevalence.sum() == pytest.approx(1)


def test_kdeyml_far_from_all_kernels_says_nothing():
    """A kernel so narrow that a window between the classes lies out of reach: the estimate stays where it starts."""
    labels = np.repeat([0, 1], [30, 10])
    data = LabeledLogits(8 * np.eye(2)[labels], labels)
    fitted = quantifier("KDEyML", bandwidth=0.02).fit(data)
    far = np.zeros((50, 2))
    assert fitted.prevalence(far) == pytest.approx([0.75, 0.25])
    near = 8 * np.eye(2)[[0] * 10 + [1] * 40]
    assert fitted.prevalence(near) == pytest.approx([0.2, 0.8], abs=1e-6)
    # Out of reach, samples neither count nor harm.
    assert fitted.prevalence(np.vstack([near, far])) == pytest.approx([0.2, 0.8], abs=1e-6)


def test_bbse_clips_weights_where_acc_finds_the_nearest_mix():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 60)
    logits = 2 * np.eye(3)[labels] + rng.normal(size=(180, 3))
    calibration = LabeledLogits(logits, labels)
    joint = np.zeros((3, 3))
    np.add.at(joint, (logits.argmax(axis=1), labels), 1 / 180)
    inner = 2 * np.eye(3)[rng.integers(3, size=500)] + rng.normal(size=(500, 3))
    fitted, acc = quantifier("BBSE").fit(calibration), quantifier("ACC").fit(calibration)
    assert fitted.prevalence(inner) == pytest.approx(acc.prevalence(inner), abs=1e-9)
    outer = np.tile([[5.0, 0, 0]], (10, 1))
    weights = np.maximum(np.linalg.solve(joint, [1, 0, 0]), 0) / 3
    assert (np.linalg.solve(joint, [1, 0, 0]) < 0).any()
    assert fitted.prevalence(outer) == pytest.approx(weights / weights.sum())


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        *(("HDy", "bins", value) for value in (1, 2.5, 1001, -3)),
        *(("KDEyHD", "trials", value) for value in (0, 0.5, 1e7)),
        *(("KDEyHD", "seed", value) for value in (-1, 0.5)),
        *((method, "bandwidth", 1e-5) for method in ("KDEyHD", "KDEyCS")),
    ],
)
def test_settings_out_of_range_are_named(method, name, value):
    with pytest.raises(InvalidInputError) as caught:
        quantifier(method, **{name: value}).fit(task())
    assert caught.value.field == name


def test_settings_change_the_answer():
    data, window = task(), task(seed=1).logits
    for name, settings_ in (
        ("HDy", {"bins": 20}),
        ("KDEyHD", {"trials": 500}),
        ("KDEyCS", {"bandwidth": 0.3}),
    ):
        default, other = quantifier(name).fit(data), quantifier(name, **settings_).fit(data)
        assert default.digest != other.digest
        assert default.prevalence(window).tolist() != other.prevalence(window).tolist()
