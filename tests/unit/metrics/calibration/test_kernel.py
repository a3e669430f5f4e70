import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics.calibration import density
from lifelong_core.metrics.calibration.density import BANDWIDTHS, ece_kde, leave_one_out_bandwidth
from lifelong_core.metrics.calibration.kernel import (
    Estimate,
    kernel_calibration_error,
    median_pairwise_distance,
)
from lifelong_core.metrics.scores import samples as samples_module
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import labelled, simulated


def kernel_error_by_definition(labels, probabilities, bandwidth, *, with_itself):
    """Mean of h over pairs, thesis Def. 2.69 with its missing bracket."""
    identity, values = np.eye(probabilities.shape[1]), []
    for i, j in itertools.product(range(len(labels)), repeat=2):
        if i != j or with_itself:
            kernel = math.exp(-math.dist(probabilities[i], probabilities[j]) / bandwidth)
            gaps = [identity[labels[n]] - probabilities[n] for n in (i, j)]
            values.append(gaps[0] @ (kernel * identity) @ gaps[1])
    return np.mean(values)


def dirichlet_by_definition(point, alpha):
    """The density, with 0**0 = 1."""
    beta = math.prod(math.gamma(a) for a in alpha) / math.gamma(sum(alpha))
    return math.prod(float(x) ** (a - 1) for x, a in zip(point, alpha, strict=True)) / beta


def ece_kde_by_definition(labels, probabilities, bandwidth, norm):
    """Thesis Def. 2.70; a total density of 0 gives nan."""
    terms, identity = [], np.eye(probabilities.shape[1])
    for j, point in enumerate(probabilities):
        others = [i for i in range(len(labels)) if i != j]
        densities = [dirichlet_by_definition(point, probabilities[i] / bandwidth + 1) for i in others]
        if sum(densities) == 0:
            return math.nan
        nearby = sum(d * identity[labels[i]] for d, i in zip(densities, others, strict=True)) / sum(densities)
        terms.append((np.abs(nearby - point) ** norm).sum())
    return np.mean(terms)


@given(labelled(min_size=2, max_size=12), st.sampled_from([0.1, 1.0, 3.0]))
def test_the_kernel_error_is_as_defined(cases, bandwidth):
    unbiased = kernel_error_by_definition(*cases, bandwidth, with_itself=False)
    biased = kernel_error_by_definition(*cases, bandwidth, with_itself=True)
    for estimator, expected in (
        ("unbiased", unbiased),
        ("biased", biased),
        ("root", math.sqrt(max(0, biased))),
    ):
        found = kernel_calibration_error(*cases, estimator=estimator, bandwidth=bandwidth)
        assert found.value == pytest.approx(expected, abs=1e-9 if estimator == "root" else 1e-12)
        assert (found.standard_error, found.samples) == (0, len(cases[0]))
    assert biased >= -1e-15


@given(labelled(min_size=2, max_size=12), st.sampled_from([0.1, 0.5, 2.0]), st.sampled_from([1, 2]))
def test_ece_kde_is_as_defined(cases, bandwidth, norm):
    expected = ece_kde_by_definition(*cases, bandwidth, norm)
    found = ece_kde(*cases, bandwidth=bandwidth, norm=norm)
    assert found.value == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert found.standard_error == 0 or math.isnan(found.value)
    assert math.isnan(found.value) or 0 <= found.value <= 2


@given(labelled(min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_names_of_classes_change_nothing(cases, random):
    labels, probabilities = cases
    order = list(range(probabilities.shape[1]))
    random.shuffle(order)
    renamed = np.argsort(order)[labels], probabilities[:, order]
    for metric in (ece_kde, kernel_calibration_error):
        assert metric(*renamed).value == pytest.approx(metric(*cases).value, abs=1e-9, nan_ok=True)


@given(labelled(min_size=2, max_size=12), st.integers(2, 3))
def test_copies_change_nothing_in_the_biased_error(cases, copies):
    copied = np.tile(cases[0], copies), np.tile(cases[1], (copies, 1))
    here, there = (
        kernel_calibration_error(*which, estimator="biased", bandwidth=0.5).value for which in (cases, copied)
    )
    assert here == pytest.approx(there, abs=1e-12)


def test_the_unbiased_error_is_0_on_average_for_a_calibrated_model():
    values = [kernel_calibration_error(*simulated(60, seed=seed), bandwidth=0.5).value for seed in range(200)]
    error = np.std(values) / math.sqrt(len(values))
    assert abs(np.mean(values)) < 3 * error
    assert min(values) < 0
    over_confident = simulated(2000, sharpness=3)
    assert kernel_calibration_error(*over_confident).value > 0.01


def test_the_default_bandwidth_is_the_median_distance():
    cases = simulated(50)
    distances = [math.dist(*pair) for pair in itertools.combinations(cases[1], 2)]
    assert median_pairwise_distance(cases[1]) == pytest.approx(np.median(distances), abs=1e-12)
    default = kernel_calibration_error(*cases)
    assert default == kernel_calibration_error(*cases, bandwidth=median_pairwise_distance(cases[1]))


@pytest.mark.parametrize("estimator", ["unbiased", "biased", "root"])
def test_a_subsample_is_within_its_standard_error(estimator):
    cases = simulated(3000, sharpness=1.5)
    everything = kernel_calibration_error(*cases, estimator=estimator, bandwidth=0.5, subsample=3000)
    assert (everything.standard_error, everything.samples) == (0, 3000)
    found = [
        kernel_calibration_error(*cases, estimator=estimator, bandwidth=0.5, subsample=200, rng=seed)
        for seed in range(100)
    ]
    deviations = np.array([(part.value - everything.value) / part.standard_error for part in found])
    assert (np.abs(deviations) < 2).mean() > 0.85
    spread = np.std([part.value for part in found])
    assert np.median([part.standard_error for part in found]) == pytest.approx(spread, rel=0.35)
    assert all(part.samples == 200 for part in found)


def test_ece_kde_on_a_subsample_is_within_its_standard_error():
    cases = simulated(1000, sharpness=2)
    everything = ece_kde(*cases, bandwidth=0.2)
    assert (everything.standard_error, everything.samples) == (0, 1000)
    found = [ece_kde(*cases, bandwidth=0.2, subsample=50, rng=seed) for seed in range(60)]
    deviations = np.array([(part.value - everything.value) / part.standard_error for part in found])
    assert (np.abs(deviations) < 2).mean() > 0.85
    assert abs(np.mean([part.value for part in found]) - everything.value) < 3 * np.std(
        [part.value for part in found]
    ) / math.sqrt(60)


def smoothed_gaps(labels, probabilities, bandwidth):
    """At each case the mean of (e_y - p) of all others, weighted by their Dirichlet densities."""
    gaps = np.eye(probabilities.shape[1])[labels] - probabilities
    found = []
    for j, point in enumerate(probabilities):
        densities = [dirichlet_by_definition(point, p / bandwidth + 1) for p in probabilities]
        densities[j] = 0
        found.append(np.array(densities) @ gaps / sum(densities))
    return np.array(found)


def test_the_chosen_bandwidth_predicts_the_label_that_is_left_out(monkeypatch):
    monkeypatch.setattr(density, "BANDWIDTHS", (0.1, 0.2, 0.5, 1.0))
    chosen = set()
    for sharpness in (1.0, 4.0):
        labels, probabilities = simulated(80, sharpness=sharpness, seed=2)
        probabilities = (probabilities + 1e-4) / (1 + 3e-4)
        gaps = np.eye(3)[labels] - probabilities
        scores = {
            width: np.square(gaps - smoothed_gaps(labels, probabilities, width)).sum()
            for width in density.BANDWIDTHS
        }
        best = min(scores, key=scores.get)
        assert leave_one_out_bandwidth(labels, probabilities) == best
        expected = np.abs(smoothed_gaps(labels, probabilities, best)).sum(axis=1)
        assert ece_kde(labels, probabilities).value == pytest.approx(expected.mean(), abs=1e-7)
        assert ece_kde(labels, probabilities, norm=2).value == pytest.approx(
            np.square(smoothed_gaps(labels, probabilities, best)).sum(axis=1).mean(), abs=1e-7
        )
        chosen.add(best)
    assert len(chosen) == 2


def from_dirichlet(concentration, classes, size, sharpness=1.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([concentration] * classes, size=size)
    labels = (rng.random((size, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    sharpened = truth**sharpness
    return labels, sharpened / sharpened.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("concentration", "classes"), [(0.1, 8), (0.3, 3), (1.0, 8), (5.0, 3)])
def test_calibrated_predictions_have_a_small_error_by_the_chosen_bandwidth(concentration, classes):
    """The gaps that remain are those of single labels: less than a third of those with bandwidth .1."""
    cases = from_dirichlet(concentration, classes, 2000)
    assert ece_kde(*cases) < 0.07
    assert ece_kde(*cases) < ece_kde(*cases, bandwidth=0.1) / 1.5
    for sharpness in (0.6, 2.0):
        assert ece_kde(*from_dirichlet(concentration, classes, 2000, sharpness)) > ece_kde(*cases)


def test_the_bandwidth_is_one_of_the_list_on_many_cases():
    cases = from_dirichlet(0.3, 8, 30_000, 2.0)
    assert leave_one_out_bandwidth(*cases) in BANDWIDTHS[:-1]
    assert leave_one_out_bandwidth(*cases, rng=3) == leave_one_out_bandwidth(
        *cases, rng=np.random.default_rng(3)
    )


def test_a_subsample_is_repeatable():
    cases = simulated(300)
    for metric in (ece_kde, kernel_calibration_error):
        options = {"subsample": 50, "bandwidth": 0.1}
        first = metric(*cases, **options, rng=7)
        assert first == metric(*cases, **options, rng=np.random.default_rng(7))
        assert first != metric(*cases, **options, rng=8)


def test_blocks_change_nothing(monkeypatch):
    cases = simulated(100)
    whole = [metric(*cases).value for metric in (ece_kde, kernel_calibration_error)]
    monkeypatch.setattr(samples_module, "BLOCK", 700)
    monkeypatch.setattr(density, "ROWS_TOGETHER", 33)
    parts = [metric(*cases).value for metric in (ece_kde, kernel_calibration_error)]
    assert parts == pytest.approx(whole, abs=1e-14)


def test_memory_does_not_grow_with_the_square():
    cases = simulated(4000)
    tracemalloc.start()
    kernel_calibration_error(*cases, subsample=4000)
    ece_kde(*cases, subsample=4000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4000**2 * 8 / 2


def test_nothing_overflows_with_a_narrow_kernel():
    """The gamma function overflows beyond 171; the nearest prediction decides."""
    labels, probabilities = [0, 1, 0, 1], [[0.9, 0.1], [0.2, 0.8], [0.91, 0.09], [0.21, 0.79]]
    expected = 2 * np.mean([0.1, 0.2, 0.09, 0.21])
    assert ece_kde(labels, probabilities, bandwidth=1e-5).value == pytest.approx(expected)


def test_a_constant_prediction_has_no_bandwidth():
    cases = [0, 1, 1], [[0.4, 0.6]] * 3
    assert median_pairwise_distance(cases[1]) == 0
    assert math.isnan(kernel_calibration_error(*cases).value)
    assert kernel_calibration_error(*cases, bandwidth=1, estimator="biased").value == pytest.approx(
        2 * (0.6 - 2 / 3) ** 2
    )
    assert ece_kde(*cases, bandwidth=0.1).value == pytest.approx((0.8 + 0.2 + 0.2) / 3)
    # The gaps are (.4, -.4) of class 1 and (-.6, .6) of class 0; each case sees the mean of the other two.
    assert ece_kde(*cases).value == pytest.approx(2 * (0.4 + 0.1 + 0.1) / 3)


def test_are_undefined_for_an_isolated_certain_prediction_and_without_pairs():
    certain = [[1.0, 0.0], [0.0, 1.0]]
    assert math.isnan(ece_kde([0, 1], certain, bandwidth=0.1).value)
    assert ece_kde([0, 1], certain).value == 0
    assert ece_kde([1, 0], certain).value == pytest.approx(4 / 2)
    for width in (0.1, None):
        assert ece_kde([0, 0, 1, 1], np.repeat(certain, 2, axis=0), bandwidth=width).value == 0
    for size in (0, 1):
        cases = [0] * size, np.array([[0.8, 0.2]] * size).reshape(size, 2)
        assert math.isnan(ece_kde(*cases).value)
        assert math.isnan(kernel_calibration_error(*cases).value)
        assert math.isnan(kernel_calibration_error(*cases, bandwidth=1).value)
        assert math.isnan(median_pairwise_distance(cases[1]))
    alone = kernel_calibration_error([0], [[0.8, 0.2]], bandwidth=1, estimator="biased")
    assert isinstance(alone, Estimate)
    assert alone == pytest.approx(0.08)
    assert (alone.standard_error, alone.samples) == (0, 1)


@pytest.mark.parametrize(
    ("metric", "options", "field"),
    [
        (kernel_calibration_error, {"estimator": "best"}, "estimator"),
        (kernel_calibration_error, {"bandwidth": 0}, "bandwidth"),
        (kernel_calibration_error, {"bandwidth": math.nan}, "bandwidth"),
        (kernel_calibration_error, {"subsample": 2}, "subsample"),
        (kernel_calibration_error, {"subsample": 10.5}, "subsample"),
        (ece_kde, {"bandwidth": 1e-7}, "bandwidth"),
        (ece_kde, {"bandwidth": math.inf}, "bandwidth"),
        (ece_kde, {"norm": 0}, "norm"),
        (ece_kde, {"subsample": math.nan}, "subsample"),
    ],
)
def test_bad_arguments_are_named(metric, options, field):
    with pytest.raises(InvalidInputError) as caught:
        metric([0, 1], [[0.5, 0.5], [0.4, 0.6]], **options)
    assert caught.value.field == field
