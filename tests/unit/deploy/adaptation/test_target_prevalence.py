from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import PrevalenceEstimate, quantifier
from lifelong_core.deploy.adaptation.target_prevalence import MINIMUM_OTHERS, pool, pool_analysis


def counted(prevalence, samples, rng):
    """An estimate by counting labels, as if quantification were free."""
    shares = rng.multinomial(samples, prevalence) / samples
    smooth = (samples * shares + 1) / (samples + shares.size)
    covariance = (np.diag(smooth) - np.outer(smooth, smooth)) / samples
    return PrevalenceEstimate(
        shares,
        shares,
        shares,
        0.95,
        samples,
        samples,
        "count",
        covariance,
        np.full(shares.size, samples - 1.0),
    )


def binary(first, error):
    p = np.array([first, 1 - first])
    return PrevalenceEstimate(
        p, p, p, 0.95, 100, 100.0, "x", error**2 * np.array([[1, -1], [-1, 1]]), np.full(2, 99.0)
    )


def mean_errors(concentration, *, repetitions=120, environments=10, classes=3):
    """Mean L1 errors (own, pooled) where environments scatter as a Dirichlet distribution does."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(repetitions):
        centre = rng.dirichlet(np.full(classes, 2.0))
        truths = rng.dirichlet(concentration * centre, size=environments)
        own = counted(truths[0], 60, rng)
        others = [counted(truth, 500, rng) for truth in truths[1:]]
        found = pool(own.prevalence, own.covariance, others)
        pooled = own.prevalence if found is None else found.prevalence
        errors.append([np.abs(one - truths[0]).sum() for one in (own.prevalence, pooled)])
    return np.mean(errors, axis=0)


def test_environments_that_are_alike_help_each_other():
    own, pooled = mean_errors(1000)
    assert pooled < 0.6 * own


def test_environments_that_are_all_different_hardly_disturb():
    own, pooled = mean_errors(3)
    assert pooled < 1.1 * own


def test_a_large_window_needs_no_help():
    rng = np.random.default_rng(1)
    own = counted([0.7, 0.2, 0.1], 100_000, rng)
    others = [counted(p, 500, rng) for p in rng.dirichlet([10, 10, 10], size=8)]
    assert pool(own.prevalence, own.covariance, others).prevalence == pytest.approx(own.prevalence, abs=2e-3)


def test_heterogeneity_is_recovered():
    rng = np.random.default_rng(2)
    concentration = 20.0
    truths = rng.dirichlet(concentration * np.array([0.5, 0.3, 0.2]), size=200)
    others = [counted(truth, 2000, rng) for truth in truths]
    found = pool(np.full(3, 1 / 3), np.eye(3) * 0.01, others).heterogeneity
    assert found == pytest.approx(1 / (concentration + 1), rel=0.25)


def test_without_any_heterogeneity_the_centre_is_the_weighted_mean():
    """Two classes: everything is scalar, and the weights are the inverse variances."""

    own = binary(0.35, 0.05)
    others = [binary(0.30, 0.1), binary(0.31, 0.05), binary(0.32, 0.1)]
    found = pool(own.prevalence, own.covariance, others)
    assert found.heterogeneity == 0
    weights = np.array([100, 400, 100.0])
    centre, variance = weights @ [0.30, 0.31, 0.32] / 600, 1 / 600
    expected = (0.35 * variance + centre * 0.05**2) / (variance + 0.05**2)
    assert found.prevalence[0] == pytest.approx(expected, rel=1e-6)
    gain = 0.05**2 / (variance + 0.05**2)
    assert found.spread[0, 0] == pytest.approx(gain**2 * variance, rel=1e-6)


@pytest.mark.parametrize("count", [MINIMUM_OTHERS - 1, MINIMUM_OTHERS])
def test_few_environments_are_no_population(count):
    rng = np.random.default_rng(3)
    own = counted([0.5, 0.5], 60, rng)
    others = [counted([0.5, 0.5], 60, rng) for _ in range(count)]
    strange = [counted([0.2, 0.3, 0.5], 60, rng)] * 5
    assert (pool(own.prevalence, own.covariance, others + strange) is None) == (count < MINIMUM_OTHERS)


def test_each_direction_is_shrunk_by_its_own_uncertainty():
    """Three classes, unequal errors: the gain is no symmetric matrix, and the pooled point uses it the right way."""
    centre = np.array([0.3, 0.4, 0.3])
    own = centre + np.array([0.02, -0.01, -0.01])
    sharp, blunt = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    covariance = 1e-6 * np.outer(sharp, sharp) + 1e-2 * np.outer(blunt, blunt)
    spread = 1e-4 * (np.eye(3) - 1 / 3)
    others = [
        PrevalenceEstimate(centre, centre, centre, 0.95, 999, 999.0, "x", spread, np.full(3, 99.0))
        for _ in range(4)
    ]
    found = pool(own, covariance, others)
    left = found.prevalence - centre
    assert left @ sharp == pytest.approx((own - centre) @ sharp, rel=0.05)
    assert abs(left @ blunt) < 0.15 * abs((own - centre) @ blunt)


def test_an_error_that_all_environments_share_is_no_agreement():
    """Estimates that differ by no more than their common error suggests do differ."""
    rng = np.random.default_rng(8)
    matrix = np.array([[1, -1], [-1, 1.0]])
    heterogeneity = []
    for _ in range(100):
        points = 0.3 + 0.03 * rng.normal(size=9) + 0.05 * rng.normal() + 0.02 * rng.normal(size=9)
        own, *others = (
            replace(binary(float(p), np.hypot(0.02, 0.05)), n=2000, effective_n=2000.0) for p in points
        )
        sampling = 0.02**2 * matrix
        found = (
            pool(own.prevalence, sampling, others, shared_covariance=shared)
            for shared in (None, 0.05**2 * matrix)
        )
        heterogeneity.append([1.0 if one is None else one.heterogeneity for one in found])
    blind, aware = np.median(heterogeneity, axis=0)
    real = 0.03**2 / (0.3 * 0.7)
    assert blind < 0.7 * real < real < aware < 4 * real


@pytest.mark.parametrize("own", [0.1, 0.4, 0.6, 0.8])
def test_an_environment_that_is_unlike_all_others_decides_by_itself(own):
    """However precisely the others agree, and although its own window is small."""
    others = [binary(first, 0.005) for first in (0.95, 0.951, 0.949, 0.95)]
    found = pool(binary(own, 0.025).prevalence, binary(own, 0.025).covariance, others)
    assert found is None or abs(found.prevalence[0] - own) < 0.03


def test_the_farther_off_the_less_is_borrowed():
    others = [binary(first, 0.01) for first in (0.5, 0.51, 0.49, 0.5)]
    moved = []
    for own in (0.52, 0.55, 0.6, 0.7, 0.9):
        found = pool(binary(own, 0.03).prevalence, binary(own, 0.03).covariance, others)
        moved.append((own - found.prevalence[0]) / (own - 0.5))
    assert moved[0] > 0.6
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] < 0.02


@given(
    st.integers(2, 6),
    st.lists(st.integers(1, 5000), min_size=4, max_size=12),
    st.floats(0.05, 500),
    st.integers(0, 2**31),
)
def test_the_pooled_estimate_is_a_prevalence_and_its_spread_a_covariance(classes, sizes, concentration, seed):
    rng = np.random.default_rng(seed)
    truths = rng.dirichlet(np.full(classes, concentration), size=len(sizes))
    own, *others = (counted(truth, size, rng) for truth, size in zip(truths, sizes, strict=True))
    found = pool(own.prevalence, own.covariance, others)
    if found is None:
        return
    assert found.prevalence.min() >= 0
    assert found.prevalence.sum() == pytest.approx(1)
    assert np.linalg.eigvalsh(found.spread).min() > -1e-9
    assert 0 <= found.heterogeneity <= 1
    order = rng.permutation(classes)
    turned = [
        PrevalenceEstimate(
            *(e.prevalence[order],) * 3,
            0.95,
            e.n,
            e.effective_n,
            "x",
            e.covariance[np.ix_(order, order)],
            e.degrees_of_freedom,
        )
        for e in (own, *others)
    ]
    again = pool(turned[0].prevalence, turned[0].covariance, turned[1:])
    assert again is not None
    assert again.prevalence == pytest.approx(found.prevalence[order], abs=1e-5)


def analyses(population, sizes, prevalence, seed):
    rng = np.random.default_rng(seed)
    fitted = quantifier("PACC").fit(population.draw([300] * 3, rng))
    return [fitted.analyse(population.window(prevalence, size, rng)) for size in sizes]


def test_pooling_cannot_mend_the_error_of_the_calibration_set(population):
    """However many environments agree: they share it."""
    own, *others = analyses(population(3, 1.5), [100, *[20_000] * 12], [0.6, 0.3, 0.1], 0)
    found = pool_analysis(own, [other.estimate for other in others]).analysis
    influence = found.influence
    shared = own.spread(
        type(influence)(0 * influence.window, 0 * influence.pseudo, own.influence.calibration)
    ).covariance
    assert (np.diag(found.estimate.covariance) >= 0.999 * np.diag(shared)).all()
    assert np.diag(found.estimate.covariance).sum() < 0.6 * np.diag(own.estimate.covariance).sum()
    widths = found.estimate.high - found.estimate.low
    assert (widths < own.estimate.high - own.estimate.low).all()
    assert found.estimate.method == "PACC, pooled"


def test_pooled_intervals_still_cover(population):
    three, rng = population(3, 1.5), np.random.default_rng(4)
    inside = []
    for _ in range(40):
        fitted = quantifier("PACC").fit(three.draw([200] * 3, rng))
        truths = rng.dirichlet(60 * np.array([0.6, 0.3, 0.1]), size=8)
        own, *others = (
            fitted.analyse(three.window(truth, size, rng))
            for truth, size in zip(truths, [80, *[800] * 7], strict=True)
        )
        found = pool_analysis(own, [other.estimate for other in others]).analysis.estimate
        inside.append((found.low <= truths[0]) & (truths[0] <= found.high))
    assert 0.88 < np.mean(inside) <= 1


def test_what_no_sample_explains_stays_in_the_pooled_covariance(population):
    own, *others = analyses(population(3, 1.5), [100, *[3000] * 5], [0.6, 0.3, 0.1], 0)
    away = np.array([0.1, -0.06, -0.04])
    doubted = replace(own, doubt=own.doubt + np.outer(away, away))
    found, more = (
        pool_analysis(one, [other.estimate for other in others]).analysis.estimate for one in (own, doubted)
    )
    assert np.diag(more.covariance - found.covariance) == pytest.approx(away**2, rel=0.5)


def test_without_other_environments_nothing_is_pooled(population):
    own, other = analyses(population(3, 1.5), [100, 100], [0.6, 0.3, 0.1], 0)
    assert pool_analysis(own, [other.estimate]) is None
