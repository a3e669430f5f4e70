"""The contract of every fingerprinting method."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lifelong_core.develop import distance
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.distances.registry import METHODS, default_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.fingerprints.examples import (
    EXTRACTOR,
    FEATURES,
    Array,
    draw_features,
    feature_fingerprint,
    fingerprints_of,
    fisher_fingerprint,
    gaussian_fingerprint,
    histogram_fingerprint,
    keyword_fingerprint,
    make_extractor,
)

MAKERS: dict[str, Callable[..., Fingerprint]] = {
    "histogram": histogram_fingerprint,
    "gaussian": gaussian_fingerprint,
    "features": feature_fingerprint,
    "fisher": fisher_fingerprint,
    "keywords": keyword_fingerprint,
}


def make(method: Method[Any], features: Array, **changes: object) -> Fingerprint:
    """The fingerprint that the method needs."""
    kind = method.fingerprint_type.kind
    if kind == "histogram":
        changes.setdefault("bins", getattr(method, "bins", None) or 100)
    return MAKERS[kind](features, **changes)


@pytest.fixture(params=list(METHODS))
def method(request: pytest.FixtureRequest) -> Method[Any]:
    return METHODS[request.param]


def test_the_published_names_are_known() -> None:
    published = {"FID", "P2L", "FED", "VDNA", "Manual"}
    binned = {"bKLD(small,target)", "bKLD(large,unweighted)", "bKLD(large,source)"}
    ours = {"naive", "MMD", "EMD", "JSD", "bKLD(small,smoothed)"}
    assert set(METHODS) == published | binned | ours


def test_distances_of_many_sources_are_those_of_each(method: Method[Any]) -> None:
    sources = [make(method, draw_features(seed)) for seed in range(4)]
    target = make(method, draw_features(9))
    many = method.distances(sources, target)
    assert many.shape == (4,)
    assert np.isfinite(many).all()
    assert many.tolist() == [method.distance(source, target) for source in sources]
    assert method.distances([], target).shape == (0,)


def test_the_matrix_holds_the_distance_of_each_pair(method: Method[Any]) -> None:
    several = [make(method, draw_features(seed)) for seed in range(3)]
    pairs = [[method.distance(source, target) for target in several] for source in several]
    assert np.allclose(method.matrix(several), pairs, rtol=1e-12, atol=1e-12)
    assert method.matrix([]).shape == (0, 0)


def test_tasks_that_differ_more_are_farther(method: Method[Any]) -> None:
    features = draw_features(0, images=200)
    near, far = features.copy(), features[:, ::-1]
    near[:20] = draw_features(1, images=20)
    target = make(method, features)
    assert method.distance(make(method, near), target) < method.distance(make(method, far), target)


def test_the_order_of_the_images_does_not_matter(method: Method[Any]) -> None:
    features, other = draw_features(0), make(method, draw_features(1))
    mixed = np.random.default_rng(0).permutation(features)
    ours, theirs = make(method, features), make(method, mixed)
    assert theirs.digest == ours.digest
    assert method.distance(theirs, other) == method.distance(ours, other)
    assert method.distance(other, theirs) == method.distance(other, ours)


def test_distance_to_itself(method: Method[Any]) -> None:
    prints = [make(method, draw_features(seed)) for seed in range(6)]
    own = [method.distance(fingerprint, fingerprint) for fingerprint in prints]
    if method.is_zero_to_itself:
        np.testing.assert_allclose(own, 0, atol=1e-6)
        for index, fingerprint in enumerate(prints):
            others = method.distances(prints[:index] + prints[index + 1 :], fingerprint)
            assert others.min() > own[index] - 1e-6
    else:
        assert not np.allclose(own, 0)


def test_symmetry(method: Method[Any]) -> None:
    first, second = (make(method, draw_features(seed)) for seed in (0, 1))
    there, back = method.distance(first, second), method.distance(second, first)
    if method.is_symmetric:
        assert there == pytest.approx(back, rel=1e-12)
    else:
        assert there != pytest.approx(back, rel=1e-6)


def test_another_kind_is_refused(method: Method[Any]) -> None:
    features = draw_features(0)
    own = make(method, features)
    for kind, other in fingerprints_of(features).items():
        if kind != method.fingerprint_type.kind:
            with pytest.raises(InvalidInputError, match=f"kind {method.fingerprint_type.kind}"):
                method.distance(other, own)
            with pytest.raises(InvalidInputError, match=f"got {kind}"):
                method.distance(own, other)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"Manual"}))
def test_another_extractor_is_refused(name: str) -> None:
    method = METHODS[name]
    features = draw_features(0)
    own = make(method, features)
    for extractor in (make_extractor(high=4.0), make_extractor(architecture="resnet18")):
        other = make(method, features, extractor=extractor)
        with pytest.raises(InvalidInputError, match="different extractors"):
            method.distance(other, own)


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if method.fingerprint_type.kind == "histogram"]
)
def test_another_number_of_bins_is_refused(name: str) -> None:
    method = METHODS[name]
    own, other = make(method, draw_features(0)), make(method, draw_features(0), bins=50)
    for source, target in ((own, other), (other, own)):
        with pytest.raises(InvalidInputError, match="bins"):
            method.distance(source, target)


def test_degenerate_tasks_have_finite_distances(method: Method[Any]) -> None:
    usual = make(method, draw_features(0))
    constant = make(method, np.full((3, FEATURES), 0.25))
    mostly_zero = np.zeros((3, FEATURES))
    mostly_zero[0, 0] = 1e-6
    huge = make(method, np.full((3, FEATURES), 1e4) * np.arange(1, FEATURES + 1))
    prints = [usual, constant, make(method, mostly_zero), huge]
    for target in prints:
        assert np.isfinite(method.distances(prints, target)).all()


def test_the_default_method_fits_the_kind() -> None:
    prints = fingerprints_of(draw_features(0))
    names = {
        kind: next(name for name, known in METHODS.items() if known == default_method(fingerprint))
        for kind, fingerprint in prints.items()
    }
    assert names == {
        "histogram": "bKLD(small,target)",
        "gaussian": "FID",
        "features": "EMD",
        "fisher": "FED",
        "keywords": "Manual",
    }
    large = histogram_fingerprint(draw_features(0), bins=1000)
    assert default_method(large) == METHODS["bKLD(large,unweighted)"]
    few = [histogram_fingerprint(draw_features(seed), bins=7) for seed in (0, 1)]
    assert np.isfinite(distance(few[0], few[1]))


def test_distance_by_name() -> None:
    first, second = (histogram_fingerprint(draw_features(seed)) for seed in (0, 1))
    assert distance(first, second, "VDNA") == METHODS["VDNA"].distance(first, second)
    assert distance(first, second) == METHODS["bKLD(small,target)"].distance(first, second)
    with pytest.raises(InvalidInputError, match="Did you mean VDNA"):
        distance(first, second, "vdna")
    with pytest.raises(InvalidInputError, match="needs histograms of 1000 bins"):
        distance(first, second, "bKLD(large,source)")


def test_the_extractor_of_the_examples_has_their_features() -> None:
    assert EXTRACTOR.features == FEATURES
