"""Where two models look: models of known places, with inputs of different size, crop and layout."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from lifelong_core.develop.localization.stability import SCORES
from lifelong_core.promotion.compare_localization import (
    ImageModel,
    LabelledImage,
    compare_localization,
    sample_images,
)
from lifelong_core.promotion.page import promotion_html
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import CentreCrop, Preprocessing, Resize
from tests.unit.promotion.reports import report

EXACT = Preprocessing(colour="grey", resize=Resize(height=32, width=32))
CROPPED = Preprocessing(
    colour="grey",
    resize=Resize(mode="shortest_edge", height=64, width=64),
    centre_crop=CentreCrop(height=48, width=48),
    layout="NHWC",
)


def spot_image(column, row, *, size=64):
    """A bright square of an eighth of the edge at this place of an 8 x 8 grid, on grey."""
    pixels = np.full((size, size), 60, dtype=np.uint8)
    edge = size // 8
    pixels[row * edge : (row + 1) * edge, column * edge : (column + 1) * edge] = 250
    return Image.fromarray(pixels)


def brightness(inputs):
    """Logits (0, s): the brightest pixels, wherever they are."""
    flat = np.sort(inputs.reshape(len(inputs), -1), axis=1)
    score = 20 * flat[:, -4:].mean(axis=1) - 10
    return np.stack([np.zeros_like(score), score, np.full_like(score, -5)], axis=1)


def corner(inputs):
    """Logits (0, s): the top left corner of an NCHW input, whatever else there is."""
    score = 40 * (0.5 - inputs[:, 0, :4, :4].mean(axis=(1, 2)))
    return np.stack([np.zeros_like(score), score], axis=1)


BY_SPOT = ImageModel(logits_of=brightness, preprocessing=EXACT)
BY_SPOT_IN_CROP = ImageModel(logits_of=brightness, preprocessing=CROPPED)
PLACES = [(2, 3), (5, 2), (3, 5), (4, 4), (5, 5), (2, 2)]
IMAGES = [
    LabelledImage(image=spot_image(*place), true_class=1, name=f"spot {number}")
    for number, place in enumerate(PLACES)
]


def means(found):
    return {one.name: one.mean for one in found.scores}


def test_the_same_model_looks_at_the_same_places():
    found = compare_localization(BY_SPOT, BY_SPOT, IMAGES)
    assert (found.images, found.grid, found.threshold) == (6, 8, 0.5)
    assert len(found.scores) == len(SCORES) == 9
    for one in found.scores:
        assert (one.mean, one.defined) == (pytest.approx(1), 6)
        assert (one.low, one.high) == (pytest.approx(1), pytest.approx(1))
        assert one.unrelated < 0.3
    assert (found.new_without_places, found.current_without_places) == (0, 0)
    assert found == compare_localization(BY_SPOT, BY_SPOT, IMAGES)


def test_other_inputs_and_crops_do_not_move_the_places():
    """A grid of 6 covers the crop of 3 / 4 of the image: cells of the 8 x 8 grid, in inputs of other sizes."""
    wide = [
        LabelledImage(
            image=Image.fromarray(np.pad(np.asarray(one.image), ((0, 0), (8, 8)), mode="edge")), true_class=1
        )
        for one in IMAGES
    ]
    for images in (IMAGES, wide):
        found = compare_localization(BY_SPOT, BY_SPOT_IN_CROP, images, grid=6)
        assert means(found)["positive Jaccard"] == pytest.approx(1)
        assert means(found)["adjusted Jaccard (kappa)"] == pytest.approx(1)
        turned = compare_localization(BY_SPOT_IN_CROP, BY_SPOT, images, grid=6)
        assert means(turned) == pytest.approx(means(found))


def test_models_that_look_elsewhere_disagree():
    by_corner = ImageModel(logits_of=corner, preprocessing=EXACT)
    found = compare_localization(by_corner, BY_SPOT, IMAGES)
    assert means(found)["positive overlap"] == 0
    assert -0.05 < means(found)["adjusted Jaccard (kappa)"] < 0


def linear(seed):
    """Two models of one seed share half of their weights."""
    weights = np.random.default_rng(0).normal(size=(32, 32)) + np.random.default_rng(seed).normal(
        size=(32, 32)
    )

    def logits_of(inputs):
        score = (inputs[:, 0] * weights).sum(axis=(1, 2))
        return np.stack([np.zeros_like(score), score], axis=1)

    return ImageModel(logits_of=logits_of, preprocessing=EXACT)


def test_intervals_are_those_of_the_mean_over_images():
    rng = np.random.default_rng(0)
    noise = [Image.fromarray(rng.integers(0, 256, (32, 32), dtype=np.uint8)) for _ in range(9)]
    found = compare_localization(
        linear(1),
        linear(2),
        [LabelledImage(image=one, true_class=0) for one in noise],
        level=0.9,
        most_examples=9,
    )
    named = {one.name: one for one in found.scores}["Spearman correlation"]
    values = [one.scores["Spearman"] for one in found.examples]
    expected = stats.t.interval(0.9, 8, np.mean(values), stats.sem(values))
    assert (named.low, named.high) == pytest.approx(expected)
    assert named.mean == pytest.approx(np.mean(values))
    assert named.mean > 0.3
    assert abs(named.unrelated) < 0.15


def test_intervals_end_at_the_limits_of_the_scores():
    """Both look at a spot where it is alone; beside a second one, the current model looks at that."""

    def looks_at(first, second):
        def logits_of(inputs):
            cells = inputs[:, 0, 8:12, 8:12].mean((1, 2)), inputs[:, 0, 20:24, 20:24].mean((1, 2))
            score = 5 + first * cells[0] + second * cells[1]
            return np.stack([np.zeros_like(score), score], axis=1)

        return ImageModel(logits_of=logits_of, preprocessing=EXACT)

    both = Image.fromarray(np.maximum(np.asarray(spot_image(2, 2)), np.asarray(spot_image(5, 5))))
    images = [LabelledImage(image=one, true_class=1) for one in (spot_image(2, 2), both)]
    found = compare_localization(looks_at(3, 0), looks_at(3, 30), images)
    ends = {one.name: (one.low, one.high) for one in found.scores}
    assert ends["positive overlap"] == ends["positive Jaccard"] == (0, 1)
    assert ends["adjusted positive Jaccard"] == (pytest.approx(-1 / 3), 1)
    assert ends["adjusted Jaccard (kappa)"] == (-1, 1)
    assert ends["adjusted positive overlap"][0] < -1


def test_the_class_is_the_decision_of_the_new_model():
    dark = [LabelledImage(image=Image.new("L", (32, 32), 20), true_class=2, name=None)]
    assert compare_localization(BY_SPOT, BY_SPOT, dark).examples[0].class_index == 0
    seen = []

    def decide(logits):
        seen.append(logits)
        return np.array([2])

    assert compare_localization(BY_SPOT, BY_SPOT, dark, decide=decide).examples[0].class_index == 2
    assert seen[0].dtype == np.float32
    assert seen[0].shape == (1, 3)
    abstains = compare_localization(BY_SPOT, BY_SPOT, dark, decide=lambda _: np.array([3]))
    assert abstains.examples[0].class_index == 0
    # Nothing in a flat image matters: no positive patch, and no score.
    assert (abstains.new_without_places, abstains.current_without_places) == (1, 1)
    assert {(one.mean, one.low, one.defined, one.unrelated) for one in abstains.scores} == {
        (None, None, 0, None)
    }


def test_examples_are_the_least_stable_images():
    by_corner = ImageModel(
        logits_of=lambda x: (
            np.where(x[:, :1, 4:8, 4:8].mean((1, 2, 3))[:, None] > 0.9, 1, 0) * 0
            + np.stack([0 * x[:, 0, 0, 0], 9 * x[:, 0, 8:16, 8:16].mean((1, 2))], axis=1)
        ),
        preprocessing=EXACT,
    )
    found = compare_localization(by_corner, BY_SPOT, IMAGES, most_examples=3)
    assert len(found.examples) == 3
    stable = [one.scores["kappa"] for one in found.examples]
    assert stable == sorted(stable)
    # The spot of the last image lies where the other model always looks.
    assert "spot 5" not in [one.name for one in found.examples]
    sheet = Image.open(BytesIO(b64decode(found.examples[0].new_overlay)))
    assert sheet.size == (176, 176)
    (both,) = compare_localization(by_corner, BY_SPOT, IMAGES[:1]).examples
    (alone,) = compare_localization(by_corner, by_corner, IMAGES[:1]).examples
    assert both.new_overlay == alone.new_overlay == alone.current_overlay != both.current_overlay
    assert not compare_localization(BY_SPOT, BY_SPOT, IMAGES[:1], most_examples=0).examples


def test_what_does_not_fit_is_named():
    with pytest.raises(InvalidInputError) as caught:
        compare_localization(BY_SPOT, BY_SPOT, [])
    assert caught.value.field == "images"
    with pytest.raises(InvalidInputError) as caught:
        compare_localization(BY_SPOT, BY_SPOT, IMAGES, grid=33)
    assert caught.value.field == "grid"


def test_samples_take_classes_by_turns_and_one_image_of_each_group():
    labels = np.array([0] * 90 + [1] * 9 + [2])
    found = sample_images(labels, None, most=15, seed=1)
    assert found == sorted(set(found))
    assert np.bincount(labels[found]).tolist() == [7, 7, 1]
    assert found == sample_images(labels, None, most=15, seed=1)
    assert found != sample_images(labels, None, most=15, seed=2)
    groups = [str(at // 3) for at in range(99)] + [None]
    spread = sample_images(labels, groups, most=50, seed=1)
    assert len({groups[at] for at in spread}) == len(spread) == 34
    assert np.bincount(labels[spread]).tolist() == [30, 3, 1]
    assert sample_images(labels, [None] * 100, most=500, seed=0) == list(range(100))


def test_the_page_shows_places_only_where_there_are():
    made = compare_localization(BY_SPOT, BY_SPOT, IMAGES)
    page = promotion_html(report(localization=made))
    assert page.count("data:image/png;base64,") == 12
    assert "LIFELONG_REPORT_IMAGES" not in page
    assert "Different images" in page
    bare = promotion_html(report(localization=made.model_copy(update={"examples": ()})))
    assert "data:image/png;base64," not in bare
    assert "LIFELONG_REPORT_IMAGES" in bare
    assert "same places?" not in promotion_html(report())
