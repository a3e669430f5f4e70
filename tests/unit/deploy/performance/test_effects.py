"""First-order effects against differences of recomputed values."""

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, fit_head, quantifier
from lifelong_core.deploy.head_fitting import held_out_output
from lifelong_core.deploy.performance.effects import Effects
from lifelong_core.deploy.performance.posteriors import JudgedWindow, WindowPosteriors, posteriors_in_window
from lifelong_core.deploy.performance.ranking import DecisionRates, posterior_areas, rate_areas

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [5, 1, 0]])
STEP = 1e-6


def sample(counts, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(3), counts))
    return LabeledLogits(2 * np.eye(3)[labels] + rng.normal(size=(labels.size, 3)), labels)


@pytest.fixture(scope="module")
def fitted():
    return quantifier("MLLS").fit(sample([60, 50, 40], 1))


@pytest.fixture(scope="module")
def head(fitted):
    return fit_head(fitted.calibration, COSTS)


WINDOW = sample([30, 40, 50], 2).logits
PREVALENCE = np.array([0.2, 0.5, 0.3])
GRADIENTS = np.random.default_rng(3).normal(size=(2, 3, 3))


def rates_of(calibration, head):
    return DecisionRates.of(calibration, head, held_out_output(calibration, head))


def by_posteriors(fitted, head, prevalence):
    window = JudgedWindow.of(WINDOW, head)
    found = WindowPosteriors.of(fitted, WINDOW, prevalence)
    return window, found, np.einsum("kcd,cd->k", GRADIENTS, window.confusion(found.posteriors, 3))


def test_posteriors_are_densities_times_prevalence(fitted):
    density = fitted.densities(WINDOW) * PREVALENCE
    expected = density / density.sum(axis=1, keepdims=True)
    assert posteriors_in_window(fitted, WINDOW, PREVALENCE) == pytest.approx(expected)


def test_a_row_without_density_has_posteriors(fitted):
    found = WindowPosteriors.of(fitted, WINDOW, np.array([1.0, 0, 0]))
    assert found.posteriors[:, 0] == pytest.approx(1)


@pytest.mark.parametrize("k", range(3))
def test_effect_of_the_prevalence_through_posteriors(fitted, head, k):
    window, found, values = by_posteriors(fitted, head, PREVALENCE)
    effects = found.effects(window, GRADIENTS, values)
    # A step of one entry, normalised: the posteriors do not depend on the length of the prevalence.
    _, _, moved = by_posteriors(fitted, head, PREVALENCE + STEP * np.eye(3)[k])
    assert effects.prevalence[k] == pytest.approx((moved - values) / STEP, rel=1e-3, abs=1e-4)


def test_effect_of_the_window_is_the_value_of_each_row(fitted, head):
    window, found, values = by_posteriors(fitted, head, PREVALENCE)
    effects = found.effects(window, GRADIENTS, values)
    assert effects.window.mean(axis=0) == pytest.approx(values)
    alone = JudgedWindow.of(WINDOW[:1], head).confusion(found.posteriors[:1], 3)
    assert effects.window[0] == pytest.approx(np.einsum("kcd,cd->k", GRADIENTS, alone))


def test_variance_of_the_true_classes_is_that_of_drawn_ones(fitted, head):
    window, found, _ = by_posteriors(fitted, head, PREVALENCE)
    truth = found.true_classes(window, GRADIENTS)
    rng = np.random.default_rng(4)
    drawn = (rng.random((20_000, len(WINDOW), 1)) > np.cumsum(found.posteriors, axis=1)[:, :2]).sum(axis=2)
    values = GRADIENTS[0][drawn, window.decisions]
    assert truth.means[:, 0].mean() == pytest.approx(values.mean(), abs=0.01)
    assert truth.variances[0] == pytest.approx(values.var(axis=0).mean(), rel=0.02)


def test_effects_through_the_rates(fitted, head):
    rates = rates_of(fitted.calibration, head)
    values = np.einsum("kcd,cd->k", GRADIENTS, rates.confusion(PREVALENCE))
    effects = rates.effects(PREVALENCE, GRADIENTS, values, len(WINDOW))
    assert PREVALENCE @ effects.prevalence == pytest.approx(values)
    # The weight of one calibration sample of class 1 grows by a step.
    data = fitted.calibration
    one = int(np.flatnonzero(data.labels == 1)[0])
    weights = np.ones(data.samples)
    weights[one] += STEP * data.counts[1]
    counts = np.zeros((3, 3))
    np.add.at(counts, (data.labels, rates.decisions), weights)
    moved = PREVALENCE[:, np.newaxis] * counts / counts.sum(axis=1, keepdims=True)
    change = (np.einsum("kcd,cd->k", GRADIENTS, moved) - values) / STEP
    assert effects.calibration[one] == pytest.approx(change, rel=1e-3, abs=1e-4)
    assert (effects.doubt > 0).all()


def test_a_class_without_errors_still_has_doubt():
    separated = LabeledLogits(20 * np.eye(2)[[0, 1] * 10], [0, 1] * 10)
    rates = rates_of(separated, fit_head(separated, [[0, 1], [1, 0]]))
    effects = rates.effects(np.array([0.5, 0.5]), np.eye(2)[np.newaxis], np.ones(1), 1)
    assert effects.calibration == pytest.approx(0)
    assert effects.doubt[0] > 0


def test_an_average_has_the_mean_effects_and_a_quarter_of_the_doubts():
    first, second = (
        Effects(*(np.full(shape, value) for shape in ((1,), (2, 1), (3, 1), (4, 1), (1,))))
        for value in (1, 3)
    )
    average = Effects.average(first, second, np.array([5.0]), np.array([7.0]))
    for effects, rows in ((average.window, 2), (average.prevalence, 3), (average.calibration, 4)):
        assert effects.tolist() == [[2.0]] * rows
    assert (average.values.tolist(), average.doubt.tolist()) == ([5.0], [8.0])


def area(scores, positive, negative):
    """AUROC by all pairs."""
    wins = (scores[:, np.newaxis] > scores) + 0.5 * (scores[:, np.newaxis] == scores)
    return positive @ wins @ negative / positive.sum() / negative.sum()


def test_areas_are_those_of_all_pairs(fitted, head):
    window, found, _ = by_posteriors(fitted, head, PREVALENCE)
    by_soft_labels, _ = posterior_areas(window, found)
    rates = rates_of(fitted.calibration, head)
    by_rates = rate_areas(rates, PREVALENCE, len(WINDOW))
    labels = fitted.calibration.labels
    weights = (PREVALENCE / fitted.calibration.counts)[labels]
    for k in range(3):
        own = found.posteriors[:, k]
        assert by_soft_labels.values[k] == pytest.approx(area(window.probabilities[:, k], own, 1 - own))
        is_own = labels == k
        scores = rates.output.probabilities[:, k]
        assert by_rates.values[k] == pytest.approx(area(scores, weights * is_own, weights * ~is_own))


@pytest.mark.parametrize("k", range(3))
def test_effects_on_areas(fitted, head, k):
    window, found, _ = by_posteriors(fitted, head, PREVALENCE)
    rates = rates_of(fitted.calibration, head)
    moved = PREVALENCE + STEP * np.eye(3)[k]
    soft, truth = posterior_areas(window, found)
    change = posterior_areas(window, WindowPosteriors.of(fitted, WINDOW, moved))[0].values - soft.values
    assert soft.prevalence[k] == pytest.approx(change / STEP, rel=1e-3, abs=1e-4)
    assert soft.window.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert (truth.variances > 0).all()
    by_rates = rate_areas(rates, PREVALENCE, len(WINDOW))
    change = rate_areas(rates, moved, len(WINDOW)).values - by_rates.values
    assert by_rates.prevalence[k] == pytest.approx(change / STEP, rel=1e-3, abs=1e-4)


def test_an_area_without_positives_is_undefined(fitted, head):
    window = JudgedWindow.of(WINDOW, head)
    certain = np.tile([1.0, 0, 0], (len(WINDOW), 1))
    found, _ = posterior_areas(window, WindowPosteriors(certain, certain))
    assert np.isnan(found.values).all()


def test_effect_of_a_calibration_sample_through_the_calibration():
    data = sample([60, 50, 40], 1)
    fitted = quantifier("auto").fit(data)
    head = fit_head(data, COSTS)
    window, found, values = by_posteriors(fitted, head, PREVALENCE)
    effects = found.effects(window, GRADIENTS, values)
    # Two samples more of one kind: the calibration moves by twice the effect of one, to first order.
    changes, predicted = [], []
    for one in range(0, data.samples, 10):
        more = np.append(np.arange(data.samples), one)
        moved = by_posteriors(quantifier("auto").fit(data.select(more)), head, PREVALENCE)[2]
        changes.append(moved - values)
        predicted.append(effects.calibration[one] / data.counts[data.labels[one]])
    assert np.corrcoef(np.ravel(changes), np.ravel(predicted))[0, 1] > 0.9
