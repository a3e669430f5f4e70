"""Differentially private histograms: the noise, its scale, and what is computed from it."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint, Privacy
from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes
from lifelong_core.develop.fingerprints.private_histogram import (
    add_noise,
    divide_bins,
    gaussian_scale,
    make_private,
)
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from tests.unit.develop.fingerprints.examples import (
    EXTRACTOR,
    FEATURES,
    draw_features,
    histogram_fingerprint,
    make_extractor,
)

EXACT = histogram_fingerprint(draw_features(0, images=2000))
ZEROS = np.zeros((512, 10), dtype=np.int64)


@pytest.mark.parametrize("images", [1, 3])
def test_pure_privacy_has_discrete_laplace_noise_of_the_l1_sensitivity(images: int) -> None:
    privacy = Privacy(epsilon=2, images_per_patient=images)
    noise = add_noise(ZEROS, privacy)
    scale = 2 * images * 512 / 2
    assert noise.mean() == pytest.approx(0, abs=6 * math.sqrt(2) * scale / math.sqrt(noise.size))
    assert np.abs(noise).mean() == pytest.approx(scale, rel=0.1)
    assert stats.kstest(noise.ravel(), stats.laplace(scale=scale).cdf).pvalue > 1e-6


def test_approximate_privacy_has_discrete_gaussian_noise_of_the_scale() -> None:
    privacy = Privacy(epsilon=1, delta=1e-6)
    noise = add_noise(ZEROS, privacy)
    scale = gaussian_scale(512, privacy)
    assert noise.std() == pytest.approx(scale, rel=0.06)
    assert stats.kstest(noise.ravel(), stats.norm(scale=scale).cdf).pvalue > 1e-6


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """The exact delta of Gaussian noise whose scale is `ratio` sensitivities (Balle and Wang, 2018, theorem 8)."""
    return float(
        stats.norm.cdf(0.5 / ratio - epsilon * ratio)
        - math.exp(epsilon) * stats.norm.cdf(-0.5 / ratio - epsilon * ratio)
    )


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 16.0, 100.0])
@pytest.mark.parametrize("images", [1, 7])
def test_the_gaussian_scale_is_enough_and_not_wasteful(epsilon: float, images: int) -> None:
    delta, sensitivity = 1e-6, images * math.sqrt(2 * 512)
    scale = gaussian_scale(512, Privacy(epsilon=epsilon, delta=delta, images_per_patient=images))
    assert gaussian_delta(epsilon, scale / sensitivity) <= delta
    least = optimize.brentq(lambda ratio: gaussian_delta(epsilon, ratio) - delta, 0.05, 10_000) * sensitivity
    assert scale < 1.15 * least


@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(0, 4))
def test_neighbours_differ_by_at_most_the_sensitivity(seed: int, removed: int, added: int) -> None:
    features = draw_features(seed, images=20)
    neighbour = np.concatenate([features[removed:], draw_features(seed + 1, images=added + 1)[1:]])
    change = (
        histogram_fingerprint(features).counts.astype(int) - histogram_fingerprint(neighbour).counts
    ).ravel()
    most = max(removed, added)
    assert np.abs(change).sum() <= 2 * most * FEATURES
    assert np.linalg.norm(change) <= most * math.sqrt(2 * FEATURES) + 1e-9


def test_the_sensitivity_is_attained() -> None:
    """All images of one patient move from the first bins to the last ones."""
    low, high = np.zeros((20, FEATURES)), np.zeros((20, FEATURES))
    high[:3] = 99
    change = histogram_fingerprint(low).counts.astype(int) - histogram_fingerprint(high).counts
    assert np.abs(change).sum() == 2 * 3 * FEATURES
    assert np.linalg.norm(change) == pytest.approx(3 * math.sqrt(2 * FEATURES))


def test_without_noise_only_the_resolution_is_lost() -> None:
    private = make_private(EXACT, EXTRACTOR, epsilon=1e9, delta=0, cells=10)
    cells = divide_bins(100, 10)
    for cell in range(10):
        inside = cells == cell
        assert np.array_equal(
            private.counts[:, inside].sum(axis=1), EXACT.counts[:, inside].sum(axis=1, dtype=np.int64)
        )
        assert np.ptp(private.counts[:, inside], axis=1).max() <= 1
    assert private.samples == EXACT.samples
    inside = draw_features(0, images=2000).clip(0, 3)
    np.testing.assert_allclose(private.mean_features, inside.mean(axis=0), atol=3 / 10)
    assert private.mean_shares.sum() == pytest.approx(1)
    full = make_private(EXACT, EXTRACTOR, epsilon=1e9, delta=0, cells=100)
    assert np.array_equal(full.counts, EXACT.counts)
    np.testing.assert_allclose(full.mean_features, inside.mean(axis=0), atol=3 / 100)


@pytest.mark.parametrize(("bins", "cells"), [(3, 3), (10, 3), (10, 10), (100, 10), (1000, 7)])
def test_cells_divide_the_bins_in_order(bins: int, cells: int) -> None:
    division = divide_bins(bins, cells)
    sizes = np.bincount(division, minlength=cells)
    assert len(division) == bins
    assert (np.diff(division) >= 0).all()
    assert sizes[0] == sizes[-1] == 1
    assert np.ptp(sizes[1:-1]) <= 1
    assert sizes.min() >= 1


@pytest.mark.parametrize("epsilon", [0.001, 100.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_private_fingerprints_work_in_all_methods_of_histograms(epsilon: float, delta: float) -> None:
    own = draw_features(0, images=300)
    for name, method in METHODS.items():
        if method.fingerprint_type is HistogramFingerprint:
            exact = histogram_fingerprint(own, bins=getattr(method, "bins", None) or 100)
            private = make_private(exact, EXTRACTOR, epsilon=epsilon, delta=delta)
            assert np.isfinite(method.distances([private, exact], exact)).all(), name
            assert np.isfinite(method.distances([private, exact], private)).all(), name


def test_the_guarantee_stays_with_the_fingerprint() -> None:
    private = make_private(EXACT, EXTRACTOR, epsilon=2.5, delta=1e-7, images_per_patient=4)
    assert private.privacy == Privacy(epsilon=2.5, delta=1e-7, images_per_patient=4)
    assert private.seed == 0
    assert EXACT.seed == 3
    read = fingerprint_from_bytes(private.to_bytes())
    assert read == private
    assert len(private.to_bytes()) < 60_000


def test_a_feature_whose_noisy_counts_are_all_negative_becomes_uniform() -> None:
    """With three cells and nothing but noise, one feature of eight; none of 100 has a chance of one in a million."""
    few = histogram_fingerprint(draw_features(0, images=2))
    made = [make_private(few, EXTRACTOR, epsilon=0.01, delta=0, cells=3) for _ in range(20)]
    assert any((private.counts == 1).all(axis=1).any() for private in made)


def test_noise_cannot_be_reproduced() -> None:
    first, second = (make_private(EXACT, EXTRACTOR, epsilon=1) for _ in range(2))
    assert not np.array_equal(first.counts, second.counts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 101}, "at most 100"),
        ({"epsilon": 1, "delta": 1}, "delta"),
        ({"epsilon": 1, "delta": -1e-6}, "delta"),
        ({"epsilon": 1, "images_per_patient": 0}, "images_per_patient"),
        ({"epsilon": 1, "cells": 2}, r"3\.\.100"),
        ({"epsilon": 1, "cells": 101}, r"3\.\.100"),
    ],
    ids=str,
)
def test_illegal_arguments_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make_private(EXACT, EXTRACTOR, **arguments)  # type: ignore[arg-type]


def test_a_private_fingerprint_gets_no_noise_again() -> None:
    private = make_private(EXACT, EXTRACTOR, epsilon=1)
    with pytest.raises(InvalidInputError, match="private already"):
        make_private(private, EXTRACTOR, epsilon=1)


def test_edges_of_another_extractor_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="another extractor"):
        make_private(EXACT, make_extractor(high=4.0), epsilon=1)


def test_without_opendp_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ConfigurationError, match=r"\[privacy\]"):
        make_private(EXACT, EXTRACTOR, epsilon=1)
