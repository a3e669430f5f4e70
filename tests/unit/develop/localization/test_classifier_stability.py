"""Stability of several classifiers against loops over images and pairs."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lifelong_core.develop.localization.classifier_stability import (
    ClassifierStability,
    classifier_stability,
)
from lifelong_core.develop.localization.stability import SCORES, mean_score, stability
from lifelong_core.values.errors import InvalidInputError


def drawn(seed=0, classifiers=3, images=8):
    """Maps with empty ones among them, so that some scores are undefined."""
    rng = np.random.default_rng(seed)
    truth = rng.random((images, 4, 5)) ** 2
    truth[0] = 0.1
    return {
        f"c{k}": np.clip(truth + rng.normal(0, 0.1, truth.shape) * (truth > 0.1), 0, 1)
        for k in range(classifiers)
    }


def defined(values):
    return [value for value in values if not math.isnan(value)]


@pytest.mark.parametrize("labels", [None, [1, 1, 0, 1, 0, 1, 1, 0]])
def test_pairs_and_their_mean_are_those_of_loops(labels):
    maps = drawn()
    found = classifier_stability(maps, labels)
    used = [i for i in range(8) if labels is None or labels[i]]
    assert (found.images, found.positive_images, found.is_labelled) == (8, len(used), labels is not None)
    of_image = {score: [] for score in SCORES}
    for pair, (first, second) in zip(found.pairs, combinations(maps, 2), strict=True):
        assert (pair.first, pair.second) == (first, second)
        for one in pair.scores:
            values = [getattr(stability(maps[first][i], maps[second][i]), one.score) for i in used]
            known = defined(values)
            assert (one.defined, one.undefined) == (len(known), len(used) - len(known))
            assert one.mean == pytest.approx(sum(known) / len(known))
            of_image[one.score].append(values)
    for one in found.scores:
        columns = zip(*of_image[one.score], strict=True)
        means = [sum(known) / len(known) for known in map(defined, columns) if known]
        assert one.mean == pytest.approx(sum(means) / len(means))
        low, high = stats.t.interval(0.95, len(means) - 1, loc=one.mean, scale=stats.sem(means))
        assert one.high == pytest.approx(min(high, 1))
        assert one.low == pytest.approx(low)
    assert found.scores[SCORES.index("adjusted_jaccard")].undefined == 1


def test_instances_are_counted_in_each_image():
    """Not over all instances of all images: a large finding must not outweigh a small one."""
    first, second = [np.ones((1, 100)), np.eye(1, 100)], [np.ones((1, 100)), np.eye(1, 100, 1)]
    found = classifier_stability({"a": first, "b": second})
    jaccard = found.scores[SCORES.index("positive_jaccard")]
    assert jaccard.mean == 0.5  # 1 in the first image and 0 in the second; pooled it would be 100 / 102


@given(st.integers(0, 1000))
def test_the_order_of_classifiers_does_not_matter(seed):
    maps = drawn(seed, images=3)
    found, turned = classifier_stability(maps), classifier_stability(dict(reversed(maps.items())))
    for one, other in zip(found.scores, turned.scores, strict=True):
        assert one.mean == pytest.approx(other.mean, abs=1e-12)
    for pair in found.pairs:
        other = turned.pair(pair.first, pair.second)
        assert [one.mean for one in pair.scores] == pytest.approx([one.mean for one in other.scores])


def test_booleans_are_maps():
    maps = {name: values >= 0.5 for name, values in drawn().items()}
    assert classifier_stability(maps).scores[:6] == classifier_stability(drawn()).scores[:6]


def test_images_may_differ_in_size_and_have_names():
    maps = {"a": [np.eye(2), np.eye(3)], "b": [np.eye(2), np.eye(3)]}
    found = classifier_stability(maps, [0, 1], names=["x", "y"])
    assert [(one.image, one.name) for one in found.by_image] == [(1, "y")]
    assert found.by_image[0].scores["adjusted_jaccard"] == 1
    assert ClassifierStability.from_json(found.to_json()) == found
    assert found.pair("a", "a") is None


def test_an_undefined_score_is_none():
    found = classifier_stability({"a": [np.zeros((2, 2))], "b": [np.zeros((2, 2))]})
    assert {(one.mean, one.low, one.defined, one.undefined) for one in found.scores} == {(None, None, 0, 1)}


@pytest.mark.parametrize(
    ("changed", "labels", "message"),
    [
        ({"b": [np.eye(2)]}, None, "b: expected maps of 2 images, as a has, got 1"),
        ({"b": [np.eye(2), np.eye(3)]}, None, "b: expected a map of shape .2, 2. for image 1, as a has"),
        ({"b": [np.eye(2), 3 * np.eye(2)]}, None, "b: image 1: expected scores in .0, 1.*exp"),
        ({"b": [np.eye(2), np.full((2, 2), np.nan)]}, None, "b: image 1: expected scores in"),
        ({"b": [np.eye(2), [["x"]]]}, None, "b: image 1: expected one number"),
        ({"b": [np.eye(2), [[1], [1, 0]]]}, None, "b: image 1: expected rows of equal length"),
        ({"b": []}, None, "b: expected at least one image"),
        ({}, [1], "labels: expected one for each of 2 images, got 1"),
        ({}, [0, 0], "labels: no image is positive"),
        ({}, [0, 2], "labels: expected class indices in 0..1"),
    ],
)
def test_errors_name_the_classifier(changed, labels, message):
    maps = {"a": [np.eye(2), np.eye(2)], "b": [np.eye(2), np.eye(2)]}
    with pytest.raises(InvalidInputError, match=message):
        classifier_stability(maps | changed, labels)


def test_other_errors():
    maps = {"a": [np.eye(2)], "b": [np.eye(2)]}
    with pytest.raises(InvalidInputError, match="maps: expected 2 to 50 classifiers, got 1"):
        classifier_stability({"a": maps["a"]})
    with pytest.raises(InvalidInputError, match="level"):
        classifier_stability(maps, level=1)
    with pytest.raises(InvalidInputError, match="names: expected 1 names"):
        classifier_stability(maps, names=["x", "y"])
    with pytest.raises(InvalidInputError, match="threshold"):
        classifier_stability(maps, threshold=math.nan)


@pytest.mark.parametrize(
    ("name", "lowest"), [("positive_jaccard", 0), ("adjusted_positive_jaccard", -1 / 3), ("kendall", -1)]
)
def test_intervals_of_means_end_at_the_limits(name, lowest):
    found = mean_score(name, [lowest, 1.0, math.nan])
    assert (found.low, found.high, found.defined, found.undefined) == (lowest, 1, 2, 1)
