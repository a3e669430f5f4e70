"""Distances against the formulas of the thesis, written out, and against scipy."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg, stats
from scipy.spatial.distance import jensenshannon

from lifelong_core.develop.fingerprints.distances import binned_kld
from lifelong_core.develop.fingerprints.distances.binned_kld import BinnedKLD, JensenShannon, Weighting
from lifelong_core.develop.fingerprints.distances.pairwise import MaximumMeanDiscrepancy, Naive
from lifelong_core.develop.fingerprints.distances.vectors import FED, P2L, VDNA, EarthMovers, Frechet, Manual
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint, KeywordFingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianFingerprint
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.fingerprints.examples import (
    EXTRACTOR,
    FEATURES,
    Array,
    draw_features,
    feature_fingerprint,
    gaussian_fingerprint,
    histogram_fingerprint,
    make_extractor,
)

FIRST, SECOND = draw_features(0, images=12), draw_features(1, images=9)


def test_naive() -> None:
    expected = np.mean([math.dist(u, v) for u in FIRST for v in SECOND])
    assert Naive().distance(feature_fingerprint(FIRST), feature_fingerprint(SECOND)) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("bandwidth", [0.3, None])
def test_mmd_of_equally_many_images_is_definition_5_3(bandwidth: float | None) -> None:
    first, second, count = FIRST[:9], SECOND, 9
    scale = bandwidth or math.sqrt(FEATURES)

    def kernel(u: Array, v: Array) -> float:
        return 1 / (1 + math.dist(u, v) ** 2 * scale**-2)

    indices = range(count)
    within = sum(
        kernel(first[i], first[j]) + kernel(second[i], second[j]) for i in indices for j in indices if i != j
    )
    across = sum(kernel(first[i], second[j]) for i in indices for j in indices)
    expected = within / count / (count - 1) - 2 / count**2 * across
    method = MaximumMeanDiscrepancy(bandwidth)
    assert method.distance(feature_fingerprint(first), feature_fingerprint(second)) == pytest.approx(expected)


def test_mmd_is_unbiased() -> None:
    """Mean over draws of 3 against 5 images, and the value for the distributions; a biased estimate is .17 higher."""
    rng = np.random.default_rng(0)
    first, second = np.array([[0.0], [1.0]]), np.array([[0.0], [3.0]])
    method = MaximumMeanDiscrepancy(1.0)
    extractor = make_extractor(features=1)

    def kernel(u: Array, v: Array) -> float:
        return float(np.mean(1 / (1 + (u - v.T) ** 2)))

    truth = kernel(first, first) + kernel(second, second) - 2 * kernel(first, second)
    draws = [
        method.distance(
            feature_fingerprint(rng.choice(first, 3), extractor),
            feature_fingerprint(rng.choice(second, 5), extractor),
        )
        for _ in range(4000)
    ]
    assert abs(np.mean(draws) - truth) < 4 * np.std(draws) / math.sqrt(len(draws))
    assert np.std(draws) / math.sqrt(len(draws)) < 0.01
    assert min(draws) < 0


def test_mmd_needs_two_images() -> None:
    one, two = feature_fingerprint(FIRST[:1]), feature_fingerprint(FIRST[:2])
    for source, target in ((one, two), (two, one)):
        with pytest.raises(InvalidInputError, match="at least two images"):
            MaximumMeanDiscrepancy().distance(source, target)
    with pytest.raises(InvalidInputError, match="bandwidth"):
        MaximumMeanDiscrepancy(0.0)


@pytest.mark.parametrize("sizes", [(12, 9), (9, 12), (12, 12), (1, 7), (1, 1), (6, 4)])
def test_emd_is_that_of_scipy_for_each_feature(sizes: tuple[int, int]) -> None:
    first, second = draw_features(2, images=sizes[0]), draw_features(3, images=sizes[1])
    expected = np.mean(
        [stats.wasserstein_distance(first[:, column], second[:, column]) for column in range(FEATURES)]
    )
    assert EarthMovers().distance(feature_fingerprint(first), feature_fingerprint(second)) == pytest.approx(
        expected, abs=1e-12
    )


def test_vdna_is_that_of_scipy_for_bins_in_units_of_the_range() -> None:
    first, second = histogram_fingerprint(FIRST, bins=10), histogram_fingerprint(SECOND, bins=10)
    places = np.arange(10) / 10
    expected = np.mean(
        [
            stats.wasserstein_distance(places, places, ours, others)
            for ours, others in zip(first.histograms, second.histograms, strict=True)
        ]
    )
    assert VDNA().distance(first, second) == pytest.approx(expected)


def test_moving_by_k_bins_costs_k_bins() -> None:
    inside = np.random.default_rng(0).uniform(0, 1, (50, FEATURES))
    width = 3.0 / 100
    start = histogram_fingerprint(inside)
    for steps in (1, 7, 60):
        moved = histogram_fingerprint(inside + steps * width)
        assert VDNA().distance(start, moved) == pytest.approx(steps / 100, rel=1e-2)
        whole = EarthMovers().distance(
            feature_fingerprint(inside), feature_fingerprint(inside + steps * width)
        )
        assert whole == pytest.approx(steps * width, rel=1e-5)


def test_fid_is_w2_with_the_square_root_of_scipy() -> None:
    first, second = gaussian_fingerprint(FIRST), gaussian_fingerprint(SECOND)
    root = linalg.sqrtm(np.cov(FIRST.T) @ np.cov(SECOND.T)).real
    squared = ((FIRST.mean(0) - SECOND.mean(0)) ** 2).sum() + np.trace(
        np.cov(FIRST.T) + np.cov(SECOND.T) - 2 * root
    )
    assert Frechet().distance(first, second) == pytest.approx(math.sqrt(squared), rel=1e-5)


def test_fid_of_commuting_covariances() -> None:
    """With diagonal covariances, W_2^2 is the sum of squared differences of means and standard deviations."""

    def gaussian(mean: Sequence[float], deviations: Sequence[float]) -> GaussianFingerprint:
        return GaussianFingerprint("0" * 64, 10, np.array(mean), np.diag(np.square(deviations)))

    source, target = gaussian([0, 0], [1, 2]), gaussian([3, 4], [1.5, 2])
    assert Frechet().distance(source, target) == pytest.approx(math.sqrt(25 + 0.25))
    assert Frechet().distance(source, source) == pytest.approx(0, abs=1e-7)


def test_fid_of_fewer_images_than_features_to_itself_is_zero() -> None:
    extractor = make_extractor(features=64)
    features = draw_features(0, images=8, features=64)
    first = gaussian_fingerprint(features, extractor)
    again = gaussian_fingerprint(np.random.default_rng(0).permutation(features), extractor)
    assert Frechet().distance(first, again) == pytest.approx(0, abs=1e-6)


def test_p2l_is_the_kld_of_the_target_from_the_source() -> None:
    def aggregate(features: Array) -> Array:
        return np.mean([row / np.abs(row).sum() for row in features], axis=0)

    expected = stats.entropy(aggregate(SECOND), aggregate(FIRST))
    source, target = histogram_fingerprint(FIRST), histogram_fingerprint(SECOND)
    assert P2L().distance(source, target) == pytest.approx(expected, rel=1e-4)


def test_fed_is_one_minus_the_cosine() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.gamma(0.3, 1, (2, 50)).astype(np.float32).astype(float)
    source, target = (FisherFingerprint("0" * 64, 10, vector) for vector in (u, v))
    expected = 1 - (u @ v) / math.sqrt(u @ u) / math.sqrt(v @ v)
    assert FED().distance(source, target) == pytest.approx(expected)
    tiny = FisherFingerprint("0" * 64, 10, u * 1e-30)
    assert FED().distance(tiny, target) == pytest.approx(expected, rel=1e-5)


def test_manual_is_the_jaccard_distance() -> None:
    source = KeywordFingerprint(("Laparoscopy", "organ", "video"))
    target = KeywordFingerprint(("laparoscopy", "video", "tool", "phase"))
    assert Manual().distance(source, target) == pytest.approx(1 - 2 / 5)
    assert Manual().distance(source, KeywordFingerprint(("x-ray",))) == 1


def kullback_leibler(reference: Array, other: Array) -> float:
    """D_KL(reference || other) = sum_k q_k ln(q_k / p_k), with 0 ln 0 = 0."""
    return sum(q * math.log(q / p) for q, p in zip(reference, other, strict=True) if q)


def bkld(source: Array, target: Array, weighting: Weighting, bins: int) -> float:
    """Definition 5.13, written out for features and the edges 0 and 3."""

    def histogram(values: Array) -> Array:
        edges = np.linspace(0, 3, bins + 1)
        edges[0], edges[-1] = -math.inf, math.inf
        return np.histogram(values, edges)[0] / len(values)

    def softmax(values: Array) -> Array:
        return np.exp(values) / np.exp(values).sum()

    weights = {
        "uniform": np.full(FEATURES, 1 / FEATURES),
        "source": np.mean([row / row.sum() for row in source], axis=0),
        "target": softmax(target.mean(axis=0)),
    }[weighting]
    return sum(
        weights[j] * kullback_leibler(histogram(target[:, j]), softmax(histogram(source[:, j])))
        for j in range(FEATURES)
    )


@pytest.mark.parametrize("weighting", ["uniform", "source", "target"])
@pytest.mark.parametrize("bins", [1, 2, 16, 100])
def test_bkld_is_definition_5_13(weighting: Weighting, bins: int) -> None:
    source, target = (histogram_fingerprint(features, bins=bins) for features in (FIRST, SECOND))
    expected = bkld(FIRST, SECOND, weighting, bins)
    assert BinnedKLD(weighting).distance(source, target) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("weighting", ["uniform", "source", "target"])
def test_the_matrix_form_of_bkld_is_the_distance(weighting: Weighting) -> None:
    method = BinnedKLD(weighting)
    sources = [histogram_fingerprint(draw_features(seed)) for seed in range(5)]
    target = histogram_fingerprint(SECOND)
    rows = np.stack([method.source_row(source) for source in sources])
    products = method.target_offset(target) - rows @ method.target_query(target)
    np.testing.assert_allclose(products, method.distances(sources, target), rtol=1e-12)
    direct = [bkld(draw_features(seed), SECOND, weighting, 100) for seed in range(5)]
    np.testing.assert_allclose(products, direct, rtol=1e-6)
    assert np.argsort(products).tolist() == np.argsort(direct).tolist()


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("weighting", ["source", "target"])
def test_blocks_do_not_change_the_matrix_of_distances(
    weighting: Weighting, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binned_kld, "_BLOCK_BYTES", rows * FEATURES * 100 * 8)
    tasks = [histogram_fingerprint(draw_features(seed)) for seed in range(5)]
    expected = [
        [bkld(draw_features(s), draw_features(t), weighting, 100) for t in range(5)] for s in range(5)
    ]
    np.testing.assert_allclose(BinnedKLD(weighting).matrix(tasks), expected, rtol=1e-6)


def test_bkld_prefers_sources_with_sharp_histograms() -> None:
    """A property of the definition that users should know: a source that fills one bin beats the target itself."""
    target_features = np.random.default_rng(0).uniform(0, 3, (300, FEATURES))
    target_features[:60] = 0.0
    target = histogram_fingerprint(target_features)
    sharp = histogram_fingerprint(np.zeros((300, FEATURES)))
    assert BinnedKLD("uniform").distance(sharp, target) < BinnedKLD("uniform").distance(target, target)
    smoothed = BinnedKLD("uniform", pseudo_count=0.5)
    assert smoothed.distance(sharp, target) > 10 * smoothed.distance(target, target)


@pytest.mark.parametrize("weighting", ["uniform", "source", "target"])
def test_smoothed_bkld_is_the_divergence_of_histograms_with_pseudo_counts(weighting: Weighting) -> None:
    source, target = histogram_fingerprint(FIRST, bins=8), histogram_fingerprint(SECOND, bins=8)
    weights = {
        "uniform": np.full(FEATURES, 1 / FEATURES),
        "source": source.mean_shares,
        "target": np.exp(target.mean_features) / np.exp(target.mean_features).sum(),
    }[weighting]
    expected = sum(
        weight * stats.entropy(wanted, (counts + 0.5) / (len(FIRST) + 0.5 * 8))
        for weight, wanted, counts in zip(weights, target.histograms, source.counts, strict=True)
    )
    assert BinnedKLD(weighting, pseudo_count=0.5).distance(source, target) == pytest.approx(expected)


def test_jsd_is_the_mean_jensen_shannon_distance_of_scipy() -> None:
    source, target = histogram_fingerprint(FIRST, bins=8), histogram_fingerprint(SECOND, bins=8)
    pairs = zip(source.histograms, target.histograms, strict=True)
    expected = np.mean([jensenshannon(ours, theirs, base=2) for ours, theirs in pairs])
    assert JensenShannon().distance(source, target) == pytest.approx(expected)


def test_jsd_of_tasks_without_a_common_bin_is_one() -> None:
    low, high = (histogram_fingerprint(np.full((300, FEATURES), value)) for value in (0.0, 3.0))
    assert JensenShannon().distance(low, high) == pytest.approx(1)


@pytest.mark.parametrize("pseudo_count", [0.0, -1.0, math.nan, math.inf])
def test_a_pseudo_count_is_above_zero(pseudo_count: float) -> None:
    with pytest.raises(InvalidInputError, match="above 0"):
        BinnedKLD(pseudo_count=pseudo_count)


small = arrays(
    np.float64, st.tuples(st.integers(2, 6), st.just(FEATURES)), elements=st.floats(0, 5, width=32)
)


@given(small, small)
def test_properties_of_any_features(first: Array, second: Array) -> None:
    ours, others = feature_fingerprint(first), feature_fingerprint(second)
    histograms = histogram_fingerprint(first, bins=8), histogram_fingerprint(second, bins=8)
    gaussians = gaussian_fingerprint(first), gaussian_fingerprint(second)
    emd = EarthMovers().distance(ours, others)
    # Both distances are at least that of the means.
    assert emd >= np.abs(first.mean(0) - second.mean(0)).mean() - 1e-5
    assert Frechet().distance(*gaussians) >= np.linalg.norm(first.mean(0) - second.mean(0)) - 1e-4
    assert 0 <= VDNA().distance(*histograms) <= 1
    assert P2L().distance(*histograms) >= 0
    for weighting in ("uniform", "source", "target"):
        assert BinnedKLD(weighting).distance(*histograms) >= -1e-12


@given(small, small, small)
def test_earth_movers_distances_keep_the_triangle_inequality(
    first: Array, second: Array, third: Array
) -> None:
    whole = [feature_fingerprint(features) for features in (first, second, third)]
    binned = [histogram_fingerprint(features, bins=8) for features in (first, second, third)]
    for method, (a, b, c) in ((EarthMovers(), whole), (VDNA(), binned)):
        assert method.distance(a, c) <= method.distance(a, b) + method.distance(b, c) + 1e-9


def test_the_extractor_of_the_oracles_has_the_edges_0_and_3() -> None:
    assert EXTRACTOR.edges.tolist() == [[0.0, 3.0]] * FEATURES
