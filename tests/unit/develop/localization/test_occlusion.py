"""Occlusion maps: by hand for models whose places are known, and for small models that learnt to look elsewhere."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from lifelong_core.develop.localization.occlusion import occlusion_map, relative_map
from lifelong_core.develop.localization.stability import stability
from lifelong_core.values.errors import InvalidInputError


class Weighted:
    """Logits (0, sum of weight times pixel, 1), and the sizes of the batches that were asked for."""

    def __init__(self, weights):
        self.weights = weights
        self.batches = []

    def __call__(self, images):
        assert images.dtype == np.float32
        self.batches.append(len(images))
        scores = (images * self.weights).sum(axis=(1, 2, 3))
        return np.stack([np.zeros_like(scores), scores, np.ones_like(scores)], axis=1)


def drawn(shape=(2, 6, 9), seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(shape).astype(np.float32), rng.normal(size=shape).astype(np.float32)


def by_hand(image, weights, class_index, rows, columns):
    """Falls of the log-odds with patches of the mean colour, one at a time."""

    def log_odds(one):
        logits = [0.0, float((one * weights).sum()), 1.0]
        others = [value for k, value in enumerate(logits) if k != class_index]
        return logits[class_index] - math.log(sum(math.exp(value) for value in others))

    found = np.zeros((len(rows), len(columns)))
    for (i, (top, bottom)), (j, (left, right)) in (
        (a, b) for a in enumerate(rows) for b in enumerate(columns)
    ):
        hidden = image.astype(np.float64).copy()
        for channel in range(len(hidden)):
            hidden[channel, top:bottom, left:right] = image[channel].mean()
        found[i, j] = log_odds(image) - log_odds(hidden)
    return found


@pytest.mark.parametrize("class_index", [0, 1, 2])
def test_is_the_fall_of_the_log_odds(class_index):
    image, weights = drawn()
    thirds = [(0, 2), (2, 4), (4, 6)], [(0, 3), (3, 6), (6, 9)]
    expected = by_hand(image, weights, class_index, *thirds)
    model = Weighted(weights)
    found = occlusion_map(image, class_index, model, grid=3)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert model.batches == [1, 9]
    np.testing.assert_array_equal(found, occlusion_map(image, class_index, model, grid=3))
    # The image is not changed, and channels may come last.
    np.testing.assert_array_equal(image, drawn()[0])
    last = Weighted(weights.transpose(1, 2, 0))
    turned = occlusion_map(image.transpose(1, 2, 0), class_index, last, grid=3, layout="NHWC")
    np.testing.assert_allclose(turned, expected, atol=1e-4)


def test_covers_the_box_only():
    image, weights = drawn((1, 8, 12))
    found = occlusion_map(image, 1, Weighted(weights), grid=2, box=(0.25, 0.5, 0.75, 1.0))
    expected = by_hand(image, weights, 1, [(4, 6), (6, 8)], [(3, 6), (6, 9)])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_constant_in_all_logits_changes_nothing():
    image, weights = drawn()
    model = Weighted(weights)
    shifted = occlusion_map(image, 1, lambda images: model(images) + 300, grid=3)
    np.testing.assert_allclose(shifted, occlusion_map(image, 1, model, grid=3), atol=1e-3)


def test_a_blurred_patch_keeps_the_mean_of_a_flat_image_and_hides_a_spot():
    flat = np.full((2, 16, 16), 0.4, dtype=np.float32)
    flat[1] = 0.9
    weights = np.zeros((2, 16, 16), dtype=np.float32)
    weights[0] = 1
    everywhere = Weighted(weights)
    np.testing.assert_allclose(occlusion_map(flat, 1, everywhere, grid=4, fill="blurred"), 0, atol=1e-4)
    spot = flat.copy()
    spot[0, 5, 6] = 9
    found = occlusion_map(spot, 1, everywhere, grid=4, fill="blurred")
    assert found.argmax() == 5
    assert 7 < found[1, 1] < 8.6
    assert found[0, 1] < 0  # the spot's blur shines into its neighbours


def test_large_images_come_in_small_batches():
    image = np.zeros((3, 640, 640), dtype=np.float32)
    sizes = []

    def model(images):
        sizes.append(len(images))
        return np.zeros((len(images), 2), dtype=np.float32)

    occlusion_map(image, 0, model, grid=3)
    assert sizes == [1, 3, 3, 3]


def test_relative_maps():
    falls = np.array([[0.02, -0.5], [0.05, 0.0]])
    np.testing.assert_allclose(relative_map(falls), [[0.2, 0], [0.5, 0]])
    np.testing.assert_allclose(relative_map(100 * falls), [[0.4, 0], [1, 0]])
    np.testing.assert_array_equal(relative_map(-np.abs(falls)), 0)


@pytest.mark.parametrize(
    ("class_index", "grid", "logits", "field"),
    [
        (1, 7, [0, 1], "grid"),
        (2, 2, [0, 1], "class_index"),
        (-1, 2, [0, 1], "class_index"),
        (0, 2, [0], "class_index"),
        (0, 2, [0, math.nan], "model"),
    ],
)
def test_what_does_not_fit_is_named(class_index, grid, logits, field):
    image, _ = drawn((1, 6, 6))
    with pytest.raises(InvalidInputError) as caught:
        occlusion_map(image, class_index, lambda images: np.tile(logits, (len(images), 1)), grid=grid)
    assert caught.value.field == field


def learnt(seed, *, marker_tells):
    """Logits of a classifier of the digits 3 and 8, and test images; the marker in a corner tells the class, or not.

    Half of the training images, drawn by the seed, are seen.
    """
    digits = load_digits()
    chosen = np.isin(digits.target, [3, 8])
    labels = (digits.target[chosen] == 8).astype(int)
    rng = np.random.default_rng(0)
    images = np.zeros((len(labels), 1, 12, 12), dtype=np.float32)
    images[:, 0, 3:11, 2:10] = digits.images[chosen] / 16
    marked = labels == 1 if marker_tells else rng.random(len(labels)) < 0.5
    images[marked, 0, :2, :2] = 3
    seen = np.random.default_rng(seed).choice(250, 125, replace=False)
    model = LogisticRegression(C=0.1).fit(images[seen].reshape(125, -1), labels[seen])

    def logits_of(given):
        scores = model.decision_function(given.reshape(len(given), -1))
        return np.stack([np.zeros_like(scores), scores], axis=1)

    return logits_of, images[250:], labels[250:]


def test_models_that_look_elsewhere_agree_less_than_those_of_one_recipe():
    by_digit = [learnt(seed, marker_tells=False)[0] for seed in (1, 2)]
    by_marker, images, labels = learnt(1, marker_tells=True)
    with_marker = images[labels == 1][:12]

    def agreement(one, other):
        pairs = (
            [relative_map(occlusion_map(image, 1, model, grid=6)) for model in (one, other)]
            for image in with_marker
        )
        return np.nanmean([stability(*pair).adjusted_jaccard for pair in pairs])

    assert agreement(*by_digit) > 0.6
    assert agreement(by_digit[0], by_marker) < 0.3
