import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

from lifelong_core.metrics.counting.confusion import confusion_matrix
from lifelong_core.metrics.counting.multiclass import accuracy
from lifelong_core.metrics.counting.one_versus_rest import f_beta, fall_out, precision, sensitivity
from lifelong_core.metrics.counting.uncertainty_aware import (
    member_spread,
    uncertainty_aware_accuracy,
    uncertainty_aware_confusion,
    uncertainty_aware_f1,
    uncertainty_aware_false_positive_rate,
    uncertainty_aware_precision,
    uncertainty_aware_recall,
)
from lifelong_core.values.errors import InvalidInputError

METRICS = (
    uncertainty_aware_accuracy,
    uncertainty_aware_precision,
    uncertainty_aware_recall,
    uncertainty_aware_false_positive_rate,
    uncertainty_aware_f1,
)
CLASSICAL = (
    accuracy,
    *(
        lambda confusion, metric=metric: metric(confusion)[1]
        for metric in (precision, sensitivity, fall_out, f_beta)
    ),
)

samples = st.lists(
    st.tuples(
        st.integers(0, 1), st.integers(0, 20).map(lambda n: n / 20), st.integers(0, 8).map(lambda n: n / 4)
    ),
    min_size=1,
    max_size=12,
).map(lambda rows: tuple(np.array(column, dtype=float) for column in zip(*rows, strict=True)))


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def area(value, threshold, sigma):
    """Of eq. 6, without sign: twice the probability between the value and the threshold."""
    density = stats.norm(threshold, sigma).pdf
    return abs(2 * integrate.quad(density, value, threshold, epsabs=1e-13)[0])


def test_weights_are_areas_and_damping_factors():
    """A direct transcription of eqs. 6-12."""
    labels, probabilities, uncertainties = [1, 1, 0, 0, 1], [0.9, 0.6, 0.1, 0.95, 0.85], [0.1, 0.5, 0, 2, 1]
    expected = np.zeros((2, 2))
    for c, p, u in zip(labels, probabilities, uncertainties, strict=True):
        weight = area(p, 0.8, 0.3) * area(c, 0.8, 0.3) * math.exp(-u * 1.5)
        expected[int(c > 0.8), int(p >= 0.8)] += weight
    found = uncertainty_aware_confusion(
        labels, probabilities, uncertainties, threshold=0.8, sigma=0.3, damping=1.5
    )
    same(found, expected)


@given(samples, st.sampled_from([0.31, 0.52, 0.77]))
def test_without_spread_and_damping_they_are_the_classical_metrics(cases, threshold):
    """Where no probability is the threshold itself."""
    labels, probabilities, uncertainties = cases
    confusion = confusion_matrix(labels, probabilities >= threshold, classes=2)
    for metric, classical in zip(METRICS, CLASSICAL, strict=True):
        found = metric(labels, probabilities, uncertainties, threshold=threshold, sigma=0, damping=0)
        same(found, classical(confusion))


@given(samples, st.sampled_from([0, 0.5, 1]), st.sampled_from([0, 1.5]))
def test_no_spread_is_the_limit_of_little_spread(cases, threshold, damping):
    """Also where a probability or a reference is the threshold."""
    parameters = {"threshold": threshold, "damping": damping}
    for metric in METRICS:
        same(metric(*cases, sigma=1e-9, **parameters), metric(*cases, sigma=0, **parameters))


@given(samples, st.floats(0, 1), st.floats(0, 2), st.floats(0, 5))
def test_are_in_the_unit_interval(cases, threshold, sigma, damping):
    """With the signed area of eq. 6, accuracy could be 2.65."""
    for metric in METRICS:
        found = metric(*cases, threshold=threshold, sigma=sigma, damping=damping)
        assert math.isnan(found) or 0 <= found <= 1 + 1e-12


@given(samples, st.floats(0.2, 0.8), st.integers(0, 3))
def test_f1_is_the_harmonic_mean(cases, threshold, damping):
    parameters = {"threshold": threshold, "sigma": 0.2, "damping": damping}
    right, found = (metric(*cases, **parameters) for metric in METRICS[1:3])
    if right > 0 and found > 0:
        same(uncertainty_aware_f1(*cases, **parameters), 2 * right * found / (right + found))


@given(samples, st.floats(0.2, 0.8))
def test_rates_of_one_reference_class_know_no_reference_weight(cases, threshold):
    """Recall and FPR: the weights of equal references cancel out."""
    labels, probabilities, _ = cases
    certain = np.zeros(len(labels))
    weights = np.array([area(p, threshold, 0.2) for p in probabilities])
    for metric, label in ((uncertainty_aware_recall, 1), (uncertainty_aware_false_positive_rate, 0)):
        own = weights[labels == label]
        chosen = own[probabilities[labels == label] >= threshold]
        found = metric(labels, probabilities, certain, threshold=threshold, sigma=0.2, damping=0)
        np.testing.assert_allclose(found, chosen.sum() / own.sum() if own.any() else np.nan, rtol=1e-6)


def test_uncertain_samples_count_less():
    arguments = ([1, 1, 0], [0.9, 0.2, 0.1])
    damped = [
        uncertainty_aware_accuracy(*arguments, [0, 1, 0], sigma=0.1, damping=damping) for damping in (0, 1, 9)
    ]
    assert damped[0] < damped[1] < damped[2]
    assert damped[2] > 0.999


def test_are_undefined_without_weight():
    assert all(math.isnan(metric([], [], [], sigma=0.1, damping=0)) for metric in METRICS)
    assert all(math.isnan(metric([1], [0.5], [0], sigma=0.1, damping=0)) for metric in METRICS)
    assert all(math.isnan(metric([1], [0.9], [1e6], sigma=0.1, damping=1)) for metric in METRICS)  # underflow
    assert math.isnan(uncertainty_aware_recall([0], [0.9], [0], sigma=0.1, damping=0))
    assert math.isnan(uncertainty_aware_precision([1], [0.4], [0], sigma=0.1, damping=0))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"labels": [0, 2]}, "labels"),
        ({"probabilities": [0.5, 1.5]}, "probabilities"),
        ({"probabilities": [0.5]}, "probabilities"),
        ({"uncertainties": [-1, 0]}, "uncertainties"),
        ({"uncertainties": [math.inf, 0]}, "uncertainties"),
        ({"threshold": 1.5}, "threshold"),
        ({"sigma": -1}, "sigma"),
        ({"sigma": math.nan}, "sigma"),
        ({"damping": -1}, "damping"),
    ],
)
def test_bad_arguments_are_named(changed, field):
    arguments = {
        "labels": [0, 1],
        "probabilities": [0.2, 0.9],
        "uncertainties": [0, 1],
        "sigma": 0.1,
        "damping": 1,
    }
    for metric in METRICS:
        with pytest.raises(InvalidInputError) as caught:
            metric(**(arguments | changed))
        assert caught.value.field == field, metric


@given(arrays(float, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.floats(0, 1)))
def test_it_is_the_mean_of_squares_less_the_squared_mean(drawn):
    """Kendall and Gal (2017), eq. 9, without the noise of the data."""
    variance = (drawn**2).mean(axis=0) - drawn.mean(axis=0) ** 2
    found = member_spread(drawn)
    np.testing.assert_allclose(found**2, variance, atol=1e-12)
    assert found.max() <= 0.5


@pytest.mark.parametrize(
    "members",
    [
        [[0.5]],
        [0.5, 0.5],
        [[0.5], [0.5, 0.5]],
        [[0.5], [1.1]],
        [[0.5], [np.nan]],
        [[0.5]] * 101,
        [["a"], ["b"]],
    ],
)
def test_what_are_no_members_is_refused(members):
    with pytest.raises(InvalidInputError) as refused:
        member_spread(members)
    assert refused.value.field == "members"


def test_as_many_members_as_allowed():
    assert member_spread([[0.0], [1.0]] * 50).tolist() == [0.5]
