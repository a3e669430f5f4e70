import itertools
from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import ExpectedGain, LabeledLogits, PostProcessingHead, fit_head, quantifier
from lifelong_core.deploy.adaptation.gain import HeadComparison, expected_gain, worst_case_cost_increase

COSTS = np.array([[0, 1, 1], [1, 0, 1], [4, 4, 0.0]])
TARGET = np.array([0.85, 0.1, 0.05])


def real_gain(population, calibration, target, rng):
    """Of refitting for the target, on forty thousand new samples."""
    labels = rng.choice(3, size=40_000, p=TARGET)
    logits = population.logits(labels, rng)
    old = fit_head(calibration, COSTS).apply(logits).decisions
    new = fit_head(calibration, COSTS, target_prevalence=target).apply(logits).decisions
    return float((COSTS[labels, old] - COSTS[labels, new]).mean())


def test_expects_what_comes_and_knows_how_sure_it_is(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    errors, quartiles, inside = [], [], []
    for _ in range(25):
        calibration = three.draw([80] * 3, rng)
        analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 500, rng))
        target = (500 * analysis.estimate.prevalence + 0.5) / 501.5
        gain = expected_gain(
            HeadComparison.of(calibration, fit_head(calibration, COSTS), target), analysis, 0.95
        )
        real = real_gain(three, calibration, target, rng)
        errors.append(gain.value - real)
        quartiles.append(real > gain.lower_quartile)
        inside.append(gain.low <= real <= gain.high)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(25)
    assert 0.55 < np.mean(quartiles) < 0.95  # 3/4 is meant; 0.09 is the standard error
    assert np.mean(inside) > 0.85


def test_a_head_that_fits_already_gains_nothing(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration = three.draw([200] * 3, rng)
    analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 1000, rng))
    target = (1000 * analysis.estimate.prevalence + 0.5) / 1001.5
    head = fit_head(calibration, COSTS, target_prevalence=target)
    gain = expected_gain(HeadComparison.of(calibration, head, target), analysis, 0.95)
    assert gain.value == 0
    assert gain.current_cost == gain.candidate_cost


def test_the_gain_is_the_difference_of_the_costs(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration = three.draw([100] * 3, rng)
    analysis = quantifier("PACC").fit(calibration).analyse(three.window(TARGET, 500, rng))
    gain = expected_gain(HeadComparison.of(calibration, fit_head(calibration, COSTS), TARGET), analysis, 0.9)
    assert gain.value == pytest.approx(gain.current_cost - gain.candidate_cost)
    assert gain.low < gain.lower_quartile < gain.value < gain.high
    assert ExpectedGain.from_document(gain.to_document()) == gain


def test_a_head_from_elsewhere_is_judged_as_it_is(population):
    """Fitted on other data, it is not optimistic on this calibration set, and must not be fitted anew."""
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration = three.draw([100] * 3, rng)
    elsewhere = fit_head(three.draw([100] * 3, rng), COSTS)
    analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 500, rng))
    gain = expected_gain(HeadComparison.of(calibration, elsewhere, TARGET), analysis, 0.95)
    decisions = elsewhere.apply(calibration.logits).decisions
    means = [COSTS[k, decisions[calibration.labels == k]].mean() for k in range(3)]
    assert gain.current_cost == pytest.approx(analysis.estimate.prevalence @ means)


def test_an_abstaining_head_is_judged_too(population):
    three, rng = population(3, 1.0), np.random.default_rng(0)
    calibration = three.draw([100] * 3, rng)
    costs = np.column_stack([COSTS, np.full(3, 0.3)])
    analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 500, rng))
    gain = expected_gain(HeadComparison.of(calibration, fit_head(calibration, costs), TARGET), analysis, 0.95)
    assert gain.value == pytest.approx(gain.current_cost - gain.candidate_cost)
    assert gain.candidate_cost < 0.5  # abstaining from everything costs 0.3


def test_a_class_with_one_sample_is_judged_without_folds(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    data = three.draw([50, 50, 1], rng)
    calibration = LabeledLogits(data.logits, data.labels)
    analysis = quantifier("MLLS").fit(calibration).analyse(three.window(TARGET, 500, rng))
    gain = expected_gain(HeadComparison.of(calibration, fit_head(calibration, COSTS), TARGET), analysis, 0.95)
    assert np.isfinite([gain.value, gain.low, gain.high, gain.lower_quartile]).all()


def test_what_the_window_does_not_know_widens_the_interval(population):
    """A second solution that lies elsewhere, and other environments: the same covariance, the same interval."""
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration = three.draw([100] * 3, rng)
    compared = HeadComparison.of(calibration, fit_head(calibration, COSTS), TARGET)
    analysis = quantifier("PACC").fit(calibration).analyse(three.window(TARGET, 500, rng))
    away = np.array([0.1, -0.06, -0.04])
    plain = expected_gain(compared, analysis, 0.95)
    deviating = expected_gain(compared, replace(analysis, doubt=np.outer(away, away)), 0.95)
    elsewhere = expected_gain(compared, analysis, 0.95, further_covariance=np.outer(away, away))
    assert deviating.value == plain.value
    assert deviating.high - deviating.low > 1.05 * (plain.high - plain.low)
    assert elsewhere.low == pytest.approx(deviating.low)
    assert elsewhere.lower_quartile == pytest.approx(deviating.lower_quartile)


def test_the_lower_quartile_is_that_of_a_t_distribution(population):
    three, rng = population(3, 1.5), np.random.default_rng(0)
    calibration = three.draw([100] * 3, rng)
    analysis = quantifier("PACC").fit(calibration).analyse(three.window(TARGET, 500, rng))
    gain = expected_gain(HeadComparison.of(calibration, fit_head(calibration, COSTS), TARGET), analysis, 0.95)
    # 0.6745 / 1.96 = 0.344 for a normal distribution, 0.329 for one with 20 degrees of freedom.
    assert 0.329 < (gain.value - gain.lower_quartile) / (gain.value - gain.low) < 0.3442


def test_the_worst_case_cost_increase_is_that_of_the_worst_labels():
    logits = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    counts = np.array([1.0, 2.0, 1.0, 5.0])
    costs = np.column_stack([COSTS, [0.3, 0.2, 0.1]])
    names = ("a", "b", "c")
    current = PostProcessingHead(1.0, [0, 0, 0], costs, np.full(3, 1 / 3), names)
    candidate = PostProcessingHead(0.5, [1, 0, -1], costs, np.full(3, 1 / 3), names)
    before, after = current.apply(logits).decisions, candidate.apply(logits).decisions
    assert (before != after).any()
    worst = max(
        float(counts @ (costs[list(labels), after] - costs[list(labels), before])) / counts.sum()
        for labels in itertools.product(range(3), repeat=4)
    )
    assert worst_case_cost_increase(logits, counts, current, candidate) == pytest.approx(worst)
    assert worst_case_cost_increase(logits, counts, current, current) == 0
