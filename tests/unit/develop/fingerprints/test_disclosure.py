"""What fingerprints reveal."""

import numpy as np
import pytest

from lifelong_core.develop.fingerprints.disclosure import Disclosure, disclosure
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint, Privacy
from lifelong_core.develop.fingerprints.private_histogram import make_private
from tests.unit.develop.fingerprints.examples import (
    EXTRACTOR,
    FEATURES,
    draw_features,
    fingerprints_of,
    gaussian_fingerprint,
    histogram_fingerprint,
)

EXAMPLES = fingerprints_of(draw_features(0, images=200))


@pytest.mark.parametrize("kind", list(EXAMPLES))
def test_every_kind_has_a_disclosure(kind: str) -> None:
    found = disclosure(EXAMPLES[kind])
    assert found.kind == kind
    assert found.statements
    assert found.samples == (None if kind == "keywords" else 200)
    assert found.describes_single_images == (kind == "features")
    assert Disclosure.from_json(found.to_json()) == found


def test_figures_of_a_histogram() -> None:
    counts = np.array([[3, 0, 1, 0], [0, 2, 1, 1]])
    fingerprint = HistogramFingerprint("0" * 64, 4, counts, np.ones(2), np.array([0.5, 0.5]))
    found = disclosure(fingerprint)
    assert (found.samples, found.features, found.bins) == (4, 2, 4)
    assert (found.occupied_bins, found.smallest_occupied_bin, found.single_image_bins) == (5, 1, 3)
    assert found.privacy is None
    assert any("no differential privacy" in statement for statement in found.statements)
    assert any("3 of 5 occupied bins hold one image" in statement for statement in found.statements)


@pytest.mark.parametrize(("images", "expected"), [(99, True), (100, False)])
def test_a_histogram_needs_as_many_images_as_bins(images: int, expected: bool) -> None:
    found = disclosure(histogram_fingerprint(draw_features(0, images=images)))
    assert found.minimum_samples == 100
    assert found.describes_single_images == expected


@pytest.mark.parametrize(("images", "expected"), [(FEATURES, True), (FEATURES + 1, False)])
def test_a_covariance_needs_more_images_than_features(images: int, expected: bool) -> None:
    found = disclosure(gaussian_fingerprint(draw_features(0, images=images)))
    assert found.minimum_samples == FEATURES + 1
    assert found.describes_single_images == expected


def test_a_private_histogram_states_its_guarantee() -> None:
    few = histogram_fingerprint(draw_features(0, images=20))
    found = disclosure(make_private(few, EXTRACTOR, epsilon=3, delta=1e-5, images_per_patient=2))
    assert found.privacy == Privacy(epsilon=3, delta=1e-5, images_per_patient=2)
    assert not found.describes_single_images
    assert "epsilon = 3, delta = 1e-05" in found.statements[0]
    assert "more than 2 of" in found.statements[0]
    assert not any("no differential privacy" in statement for statement in found.statements)
