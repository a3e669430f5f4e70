"""The estimate against known dimensions, and against its formula."""

import numpy as np
import pytest

from lifelong_core.develop.features.collection import estimate_intrinsic_dimension
from lifelong_core.values.errors import InvalidInputError


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_plane_in_many_dimensions_has_its_own(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    features = rng.uniform(size=(1500, dimension)) @ rng.normal(size=(dimension, 40)) + 100
    assert estimate_intrinsic_dimension(features) == pytest.approx(dimension, rel=0.13)


def test_the_formula_is_that_of_levina_and_bickel() -> None:
    features = np.random.default_rng(0).normal(size=(300, 6))
    distances = np.sort(np.linalg.norm(features[:, None] - features, axis=2), axis=1)[:, 1:6]
    expected = 1 / np.log(distances[:, -1:] / distances[:, :-1]).mean()
    assert estimate_intrinsic_dimension(features, neighbours=5) == pytest.approx(expected)


def test_equal_images_count_once() -> None:
    features = np.random.default_rng(0).normal(size=(100, 3))
    assert estimate_intrinsic_dimension(np.tile(features, (3, 1))) == estimate_intrinsic_dimension(features)


@pytest.mark.parametrize("count", [1, 20])
def test_too_few_images_have_no_dimension(count: int) -> None:
    features = np.random.default_rng(0).normal(size=(count, 3))
    assert estimate_intrinsic_dimension(features, neighbours=20) is None


@pytest.mark.parametrize(
    ("features", "neighbours"), [(np.zeros(3), 2), (np.full((5, 2), np.nan), 2), (np.zeros((5, 2)), 1)]
)
def test_wrong_arguments_are_refused(features: np.ndarray, neighbours: int) -> None:
    with pytest.raises(InvalidInputError):
        estimate_intrinsic_dimension(features, neighbours=neighbours)
