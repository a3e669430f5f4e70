import numpy as np
import pytest

from lifelong_core.deploy.label_shift import drift as class_spread
from lifelong_core.deploy.label_shift.drift import ClassSpread
from lifelong_core.deploy.labeled import LabeledLogits


def drawn(counts, rng, groups=None):
    labels = np.repeat(np.arange(len(counts)), counts)
    data = LabeledLogits(rng.normal(size=(labels.size, len(counts))), labels, groups)
    return data, data.logits.astype(float) * (1 + labels[:, np.newaxis]) + 3 * labels[:, np.newaxis]


def test_is_the_formula_where_every_class_has_many_samples():
    rng = np.random.default_rng(0)
    data, rows = drawn([40_000, 20_000], rng)
    spread = ClassSpread.of(rows, data)
    prevalence = np.array([0.3, 0.7])
    expected = sum(
        (p / 500 + p**2 / data.counts[k]) * np.cov(rows[data.labels == k].T) for k, p in enumerate(prevalence)
    )
    np.testing.assert_allclose(spread.covariance(prevalence, 500), expected, rtol=2e-3, atol=1e-5)


def test_covers_how_far_windows_really_are_from_the_mix():
    rng = np.random.default_rng(1)
    prevalence, distances, claimed = np.array([0.8, 0.2]), [], []
    for _ in range(2000):
        data, rows = drawn([20, 60], rng)
        labels = np.repeat([0, 1], [80, 20])
        window = rng.normal(size=(100, 2)) * (1 + labels[:, np.newaxis]) + 3 * labels[:, np.newaxis]
        spread = ClassSpread.of(rows, data)
        distances.append(window.mean(axis=0) - prevalence @ spread.means)
        claimed.append(np.diag(spread.covariance(prevalence, 100)))
    actual, claim = np.var(distances), np.mean(claimed)
    assert 1.0 <= claim / actual <= 1.8  # the surplus is that of a small class


@pytest.mark.parametrize("size", [1, 10])
def test_groups_of_equal_samples_count_as_one_sample_each(size, monkeypatch):
    for constant in ("PSEUDO_SAMPLES", "DOUBTED"):
        monkeypatch.setattr(class_spread, constant, 0.0)
    rng = np.random.default_rng(2)
    data, rows = drawn([200, 300], rng)
    repeated = LabeledLogits(
        np.repeat(data.logits, size, axis=0), np.repeat(data.labels, size), np.repeat(np.arange(500), size)
    )
    prevalence, huge = np.array([0.5, 0.5]), 1e12
    alone = ClassSpread.of(rows, data).covariance(prevalence, huge)
    grouped = ClassSpread.of(np.repeat(rows, size, axis=0), repeated).covariance(prevalence, huge)
    np.testing.assert_allclose(grouped, alone, rtol=0.02, atol=1e-4)


def test_degrees_of_freedom_are_those_of_the_class_that_matters():
    rng = np.random.default_rng(3)
    data, rows = drawn([400, 21], rng)
    spread = ClassSpread.of(rows, data)
    rare = spread.degrees_of_freedom(np.array([0.001, 0.999]), 1e9, np.ones(2))
    assert rare == pytest.approx(20, rel=0.05)
    assert spread.degrees_of_freedom(np.array([0.999, 0.001]), 1e9, np.ones(2)) == pytest.approx(
        399, rel=0.05
    )


@pytest.mark.parametrize(("samples", "doubt"), [(20, 20 / 16), (400, 400 / 396), (4, 2)])
def test_a_class_mean_varies_as_if_of_four_samples_fewer_though_of_half_at_least(samples, doubt, monkeypatch):
    data, rows = drawn([300, samples], np.random.default_rng(5))
    spread = ClassSpread.of(rows, data)
    prevalence, huge = np.array([0.0, 1.0]), 1e12
    doubted = spread.covariance(prevalence, huge)
    monkeypatch.setattr(class_spread, "DOUBTED", 0.0)
    np.testing.assert_allclose(doubted, doubt * spread.covariance(prevalence, huge), rtol=1e-6)


def test_a_single_sample_of_a_class_borrows_its_spread():
    rng = np.random.default_rng(4)
    data, rows = drawn([300, 1], rng)
    assert (np.diag(ClassSpread.of(rows, data).covariance(np.array([0.1, 0.9]), 1e9)) > 0.5).all()
