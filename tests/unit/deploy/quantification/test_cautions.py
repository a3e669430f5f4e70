import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import LabeledLogits, PrevalenceEstimate, quantifier
from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.quantification.cautions import Separation, find_cautions
from lifelong_core.values.arrays import softmax
from lifelong_core.values.errors import InvalidInputError


def calibrated(counts, *, mistaken=None):
    """The first case of each class is mistaken, or of those that are named."""
    labels = np.repeat(np.arange(len(counts)), counts)
    logits = np.eye(len(counts))[labels]
    chosen = range(len(counts)) if mistaken is None else mistaken
    first = np.searchsorted(labels, np.asarray(chosen, dtype=int))
    logits[first] = np.roll(logits[first], 1, axis=1)
    return LabeledLogits(logits, labels)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([140, 30, 30], []),
        ([139, 30, 30], ["199"]),
        ([140, 31, 29], ["class 2:"]),
        ([180, 29, 1], ["classes 1 and 2:"]),
        ([150, *[29] * 5], ["classes 1, 2, 3, 4 and 5:"]),
        ([150, *[29] * 6], ["6 classes:"]),
        ([100, 10], ["class 1:", "110"]),
    ],
)
def test_small_calibration_sets_are_named(counts, said):
    found = find_cautions(calibrated(counts), None)
    assert len(found) == len(said)
    for text, part in zip(found, said, strict=True):
        assert part in text


@pytest.mark.parametrize(
    ("counts", "mistaken", "said"),
    [
        ([150, 150], [1], ["of class 0 was mistaken in 150, so up to 2 % may be", "±0.02"]),
        ([150, 150], [], ["of classes 0 and 1 was mistaken in 150,", "up to 2 %"]),
        ([300, 150], [], ["was mistaken in 150 or more,", "up to 2 %"]),
        ([150, 3000], [0], ["of class 1 was mistaken in 3,000,", "up to 0.1 %", "±0.001"]),
    ],
)
def test_a_class_of_which_no_case_was_mistaken_is_named(counts, mistaken, said):
    (text,) = find_cautions(calibrated(counts, mistaken=mistaken), None)
    for part in said:
        assert part in text


def test_cases_of_one_patient_count_once_where_none_was_mistaken():
    data = calibrated([300, 300], mistaken=[])
    grouped = LabeledLogits(data.logits, data.labels, groups=np.arange(600) // 2)
    (text,) = find_cautions(grouped, None)
    assert "was mistaken in 150, so up to 2 % may be" in text


def test_classes_that_may_look_alike_are_named():
    blurred = np.array([[0.7, 0.02, -0.72], [0.5, 0.01, -0.51]])
    (text,) = find_cautions(calibrated([100, 100, 100]), blurred)
    assert "classes 0 and 2 look" in text
    assert find_cautions(calibrated([100, 100, 100]), np.zeros((0, 3))) == ()


@pytest.mark.parametrize("method", ["CC", "PACC", "MLLS", "auto"])
def test_every_estimate_carries_them(population, method):
    rng = np.random.default_rng(0)
    three = population(3, 1.5)
    for counts, sound in (([100] * 3, True), ([100, 90, 12], False)):
        estimate = (
            quantifier(method).fit(three.draw(counts, rng)).estimate(three.window([0.5, 0.3, 0.2], 300, rng))
        )
        assert (estimate.cautions == ()) == sound
        again = PrevalenceEstimate.from_document(json.loads(json.dumps(estimate.to_document())))
        assert again == estimate


def test_cautions_of_a_document_are_a_list_of_texts(population):
    rng = np.random.default_rng(0)
    three = population(3, 1.5)
    estimate = (
        quantifier("PACC").fit(three.draw([50] * 3, rng)).estimate(three.window([0.5, 0.3, 0.2], 300, rng))
    )
    for wrong in ("text", [1], None):
        with pytest.raises(InvalidInputError) as caught:
            PrevalenceEstimate.from_document({**estimate.to_document(), "cautions": wrong})
        assert caught.value.field == "cautions"


def confounded(samples, noise, rng, *, mix=(1 / 3, 1 / 3, 1 / 3)):
    """Thesis Ex. 6.5: the outputs of class 1 are those of class 0 in half of the cases, of class 2 in the others."""
    labels = rng.choice(3, size=samples, p=mix)
    kind = np.where(labels == 1, rng.choice([0, 2], size=samples), labels)
    centres = np.array([[2.0, 1.0, 0.0], [0, 0, 0], [0.0, 1.0, 2.0]])
    return LabeledLogits(centres[kind] + noise * rng.normal(size=(samples, 3)), labels)


@pytest.mark.parametrize("samples", [90, 600, 5000])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_mixes_that_look_alike_are_found_though_chance_tells_them_apart(samples, noise):
    data = confounded(samples, noise, np.random.default_rng(samples))
    found = Separation.of(softmax(data.logits.astype(float)), data)
    assert found.thinnest > 1e-4
    assert found.blurred.shape == (1, 3)
    assert abs(found.blurred[0] @ np.array([1, -2, 1]) / np.sqrt(6)) > 0.98


@pytest.mark.parametrize(("classes", "counts"), [(2, 10), (3, 15), (8, 40)])
def test_classes_that_differ_are_not_blurred(population, classes, counts):
    data = population(classes, 2.0).draw([counts] * classes, np.random.default_rng(0))
    assert Separation.of(softmax(data.logits.astype(float)), data).blurred.shape == (0, classes)


def test_a_single_sample_shows_no_spread_and_is_taken_to_have_that_of_the_others():
    """Class 2 looks like class 0, and its only sample is as far from the mean of class 0 as samples are."""
    labels = np.repeat([0, 1, 2], [80, 80, 1])
    centres = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [2.0, 0.0, 0.0]])[labels]
    blurred = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        data = LabeledLogits(centres + 0.5 * rng.normal(size=(161, 3)), labels)
        blurred += len(Separation.of(data.logits.astype(float), data).blurred)
    assert blurred >= 8


@pytest.mark.parametrize("method", ["PACC", "MLLS", "auto"])
def test_intervals_hold_all_mixes_that_look_alike(method):
    """Whatever the true mix on that line is, it is inside."""
    rng = np.random.default_rng(4)
    inside = []
    for truth in ([0.5, 0.1, 0.4], [0.2, 0.7, 0.1], [0.45, 0.5, 0.05], [0.3, 0.0, 0.7]):
        fitted = quantifier(method).fit(confounded(900, 0.5, rng))
        estimate = fitted.estimate(confounded(1500, 0.5, rng, mix=truth).logits)
        inside += list((estimate.low <= truth) & (truth <= estimate.high))
    assert np.mean(inside) > 0.9


def test_a_direction_in_fewer_features_than_classes_is_blurred():
    labels = np.repeat(np.arange(4), 50)
    data = LabeledLogits(np.eye(4)[labels], labels)
    one = one_hot(labels, 4)[:, :1] + np.random.default_rng(0).normal(scale=0.1, size=(200, 1))
    assert Separation.of(one, data).blurred.shape == (2, 4)


@given(st.integers(2, 6), st.integers(0, 2**31))
def test_the_ambiguity_reaches_to_the_border_of_the_simplex(classes, seed):
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.ones(classes))
    direction = rng.normal(size=classes)
    direction -= direction.mean()
    direction /= np.linalg.norm(direction)
    covariance = Separation(1.0, (0, 1), direction[np.newaxis]).ambiguity(prevalence)
    reach = float(np.sqrt(np.trace(covariance)))
    assert np.allclose(covariance, reach**2 * np.outer(direction, direction))
    lowest = [(prevalence + step * direction).min() for step in (reach, -reach)]
    assert max(lowest) == pytest.approx(0, abs=1e-9)


def test_nothing_blurred_is_no_ambiguity():
    assert Separation(1.0, (0, 1), np.zeros((0, 3))).ambiguity(np.full(3, 1 / 3)).tolist() == [[0] * 3] * 3
