"""Fingerprints of streams: any batches, merged in any order, give the fingerprint of all features."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.fingerprints.feature_set import make_feature_fingerprint
from lifelong_core.develop.fingerprints.gaussian import (
    MOST_GAUSSIAN_FEATURES,
    GaussianBuilder,
    GaussianFingerprint,
    make_gaussian_fingerprint,
)
from lifelong_core.develop.fingerprints.histogram import (
    HistogramBuilder,
    count_bins,
    make_histogram_fingerprint,
)
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.fingerprints.examples import EXTRACTOR, FEATURES, Array, draw_features, make_extractor

BUILDERS: dict[str, Callable[[ExtractorReference], Any]] = {
    "histogram": HistogramBuilder,
    "gaussian": GaussianBuilder,
}
MAKERS: dict[str, Callable[..., Any]] = {
    "histogram": make_histogram_fingerprint,
    "gaussian": make_gaussian_fingerprint,
    "features": make_feature_fingerprint,
}


@given(st.sampled_from(list(BUILDERS)), st.lists(st.integers(0, 40), max_size=6), st.randoms())
def test_batches_and_workers_do_not_matter(kind: str, cuts: list[int], random: Any) -> None:
    features = draw_features(0)
    workers = [BUILDERS[kind](EXTRACTOR) for _ in range(3)]
    for batch in np.split(features, sorted(cuts)):
        if len(batch):
            random.choice(workers).add(batch)
    random.shuffle(workers)
    total = BUILDERS[kind](EXTRACTOR)
    for worker in workers:
        total.merge(worker)
    whole, merged = MAKERS[kind](features, EXTRACTOR), total.build()
    assert merged.samples == whole.samples == 40
    if kind == "histogram":
        assert np.array_equal(merged.counts, whole.counts)
        np.testing.assert_allclose(merged.mean_features, whole.mean_features, rtol=1e-6)
        np.testing.assert_allclose(merged.mean_shares, whole.mean_shares, rtol=1e-6)
    else:
        np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-6, atol=1e-7)


def test_means_and_covariance_are_those_of_numpy() -> None:
    features = draw_features(0) + 1000.0  # a large mean, which costs a naive sum of squares its digits
    gaussian = make_gaussian_fingerprint(features, EXTRACTOR)
    np.testing.assert_allclose(gaussian.mean, features.mean(axis=0), rtol=1e-7)
    np.testing.assert_allclose(gaussian.covariance, np.cov(features.T), rtol=1e-6, atol=1e-7)
    histogram = make_histogram_fingerprint(features, EXTRACTOR)
    np.testing.assert_allclose(histogram.mean_features, features.mean(axis=0), rtol=1e-7)


def test_more_can_be_added_after_a_fingerprint_was_built() -> None:
    features = draw_features(0)
    builder = HistogramBuilder(EXTRACTOR)
    builder.add(features[:10])
    first = builder.build()
    builder.add(features[10:])
    assert first == make_histogram_fingerprint(features[:10], EXTRACTOR)
    assert np.array_equal(builder.build().counts, make_histogram_fingerprint(features, EXTRACTOR).counts)


def test_bins_are_half_open_and_values_outside_are_clipped() -> None:
    edges = np.array([[0.0, 4.0]])
    values = np.array([[-1e30], [-0.1], [0.0], [0.999], [1.0], [3.999], [4.0], [1e30]])
    assert count_bins(values, edges, 4).tolist() == [[4, 1, 0, 3]]


def test_a_large_batch_is_counted_in_pieces() -> None:
    features = draw_features(0, images=3000)
    edges = [-np.inf, *np.linspace(0, 3, 101)[1:-1], np.inf]
    expected = [np.histogram(features[:, column], edges)[0] for column in range(FEATURES)]
    assert np.array_equal(make_histogram_fingerprint(features, EXTRACTOR).counts, expected)


def test_an_image_without_any_feature_counts_as_uniform() -> None:
    features = np.zeros((2, FEATURES))
    features[0, 0] = 7.0
    shares = make_histogram_fingerprint(features, EXTRACTOR).mean_shares
    np.testing.assert_allclose(shares, [0.6, 0.1, 0.1, 0.1, 0.1], rtol=1e-6)


def test_negative_features_count_by_their_size() -> None:
    features = np.array([[-3.0, 1.0, 0.0, 0.0, 0.0]])
    shares = make_histogram_fingerprint(features, EXTRACTOR).mean_shares
    np.testing.assert_allclose(shares, [0.75, 0.25, 0, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((0, FEATURES)), "one row per image"),
        (np.zeros((3, FEATURES + 1)), "expected shape"),
        (np.zeros(FEATURES), "expected shape"),
        (np.full((3, FEATURES), np.nan), "row 0 holds a value"),
        (np.array([[0.0] * FEATURES, [np.inf] * FEATURES]), "row 1 holds a value"),
        (np.full((2, FEATURES), 1e39), "finite float32"),
        (np.full((2, FEATURES), "text"), "expected numbers"),
    ],
)
def test_features_that_do_not_fit_are_refused(kind: str, features: Array, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MAKERS[kind](features, EXTRACTOR)


@pytest.mark.parametrize("kind", list(BUILDERS))
def test_a_refused_batch_counts_nothing(kind: str) -> None:
    builder = BUILDERS[kind](EXTRACTOR)
    builder.add(draw_features(0))
    before = builder.build()
    bad = draw_features(1)
    bad[-1, -1] = np.nan
    with pytest.raises(InvalidInputError):
        builder.add(bad)
    assert builder.build() == before


@pytest.mark.parametrize("kind", list(BUILDERS))
def test_nothing_to_build(kind: str) -> None:
    with pytest.raises(InvalidInputError, match="at least"):
        BUILDERS[kind](EXTRACTOR).build()


def test_one_image_has_a_histogram_but_no_covariance() -> None:
    one = draw_features(0, images=1)
    assert make_histogram_fingerprint(one, EXTRACTOR).counts.sum() == FEATURES
    with pytest.raises(InvalidInputError, match="at least two images, got 1"):
        make_gaussian_fingerprint(one, EXTRACTOR)


def test_a_covariance_has_a_largest_size() -> None:
    assert GaussianBuilder(make_extractor(features=MOST_GAUSSIAN_FEATURES))
    with pytest.raises(InvalidInputError, match=r"1\.\.4096 features"):
        GaussianBuilder(make_extractor(features=MOST_GAUSSIAN_FEATURES + 1))
    with pytest.raises(InvalidInputError, match=r"1\.\.4096 features"):
        GaussianFingerprint("0" * 64, 9, np.zeros(MOST_GAUSSIAN_FEATURES + 1), np.zeros((1, 1)))


@pytest.mark.parametrize("value", [-1e-3, 0.9999, 1.0, 1.0001])
def test_a_covariance_is_positive_semidefinite(value: float) -> None:
    """Two features with variance 1: the correlation is at most 1; -1e-3 stands for a variance."""
    covariance = np.diag([1.0, value]) if value < 0 else np.array([[1.0, value], [value, 1.0]])
    if 0 < value <= 1:
        assert GaussianFingerprint("0" * 64, 9, np.zeros(2), covariance).features == 2
    else:
        with pytest.raises(InvalidInputError, match="positive semi-definite"):
            GaussianFingerprint("0" * 64, 9, np.zeros(2), covariance)


@pytest.mark.parametrize("kind", list(BUILDERS))
def test_builders_of_other_extractors_are_not_merged(kind: str) -> None:
    other = BUILDERS[kind](make_extractor(high=4.0))
    with pytest.raises(InvalidInputError, match="same extractor"):
        BUILDERS[kind](EXTRACTOR).merge(other)


def test_builders_of_other_bins_are_not_merged() -> None:
    with pytest.raises(InvalidInputError, match="bins"):
        HistogramBuilder(EXTRACTOR).merge(HistogramBuilder(EXTRACTOR, bins=50))


@pytest.mark.parametrize("bins", [0, 10_001])
def test_the_number_of_bins_has_limits(bins: int) -> None:
    with pytest.raises(InvalidInputError, match=r"1\.\.10000"):
        HistogramBuilder(EXTRACTOR, bins=bins)


@pytest.mark.parametrize("bins", [1, 10_000])
def test_numbers_of_bins_within_the_limits(bins: int) -> None:
    assert HistogramBuilder(EXTRACTOR, bins=bins)


def test_fingerprints_cannot_be_changed() -> None:
    fingerprint = make_histogram_fingerprint(draw_features(0), EXTRACTOR)
    for array in (fingerprint.counts, fingerprint.mean_features, fingerprint.mean_shares):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
