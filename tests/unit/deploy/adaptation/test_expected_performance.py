"""Expected performance in a population, against counts and against simulated populations."""

from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, PrevalenceEstimate, fit_head, quantifier
from lifelong_core.deploy.adaptation.expected_performance import class_performances
from lifelong_core.deploy.head_fitting import held_out_output

COSTS = np.array([[0.0, 1.0, 0.3], [4.0, 0.0, 0.3]])


def estimate(prevalence, spread: float = 0.0, *, freedom: float = 100.0) -> PrevalenceEstimate:
    prevalence = np.asarray(prevalence, dtype=float)
    size = prevalence.size
    covariance = spread**2 * (np.eye(size) - np.full((size, size), 1 / size))
    return PrevalenceEstimate(
        prevalence,
        prevalence * 0,
        prevalence * 0 + 1,
        0.95,
        100,
        100.0,
        "x",
        covariance,
        np.full(size, freedom),
    )


@pytest.fixture(scope="module")
def fitted(population):
    calibration = population(2).draw((300, 200), np.random.default_rng(0))
    return calibration, fit_head(calibration, COSTS)


def test_the_value_weights_the_classes_by_the_estimated_prevalence(fitted) -> None:
    calibration, head = fitted
    decisions, labels = held_out_output(calibration, head).decisions, calibration.labels
    shares = [float(np.mean(decisions[labels == k] == k)) for k in (0, 1)]
    costs = [float(np.mean(COSTS[k, decisions[labels == k]])) for k in (0, 1)]
    of = estimate((0.9, 0.1))
    assert class_performances(calibration, head)["AC"].expected(of).value == pytest.approx(
        0.9 * shares[0] + 0.1 * shares[1]
    )
    assert class_performances(calibration, head)["EC"].expected(of).value == pytest.approx(
        0.9 * costs[0] + 0.1 * costs[1]
    )


def test_an_uncertain_prevalence_widens_the_interval(fitted) -> None:
    found = class_performances(*fitted)["EC"]
    sure, unsure = (found.expected(estimate((0.5, 0.5), spread)) for spread in (0.0, 0.2))
    assert sure.value == unsure.value
    assert unsure.low < sure.low < sure.value < sure.high < unsure.high


def test_the_interval_of_a_known_prevalence_has_the_binomial_width(fitted) -> None:
    calibration, head = fitted
    found = class_performances(calibration, head)["AC"]
    share, n = found.means[0], calibration.counts[0]
    expected = np.sqrt(share * (1 - share) / n)
    assert np.sqrt(found.covariance[0, 0]) == pytest.approx(expected, rel=0.05)


def test_few_samples_without_an_error_are_not_certain() -> None:
    logits = np.repeat([[5.0, 0.0], [0.0, 5.0]], 6, axis=0)
    calibration = LabeledLogits(logits, np.repeat([0, 1], 6))
    found = class_performances(calibration, fit_head(calibration, [[0, 1], [1, 0]]))["AC"].expected(
        estimate((0.5, 0.5))
    )
    assert found.value == 1
    assert found.low < 0.9


def test_samples_of_one_group_are_not_independent(fitted) -> None:
    calibration, head = fitted
    doubled = LabeledLogits(
        np.repeat(calibration.logits, 4, axis=0),
        np.repeat(calibration.labels, 4),
        np.repeat(np.arange(calibration.samples), 4),
    )
    alone, grouped = (class_performances(one, head)["AC"].covariance[0, 0] for one in (calibration, doubled))
    assert grouped == pytest.approx(alone, rel=0.2)
    assert class_performances(replace(doubled, groups=None), head)["AC"].covariance[0, 0] < alone / 2


def test_without_a_spread_of_the_estimate_there_is_no_figure(fitted) -> None:
    assert class_performances(*fitted)["EC"].expected(estimate((0.5, 0.5), freedom=0)) is None


def test_the_interval_covers_the_performance_in_the_population(population) -> None:
    """Over calibration sets and windows; the reference is the exact performance of the head, from many samples."""
    model, prevalence = population(2, 1.5), (0.8, 0.2)
    covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        calibration = model.draw((150, 150), rng)
        head = fit_head(calibration, [[0, 1], [2, 0]])
        of = quantifier("ACC").fit(calibration).estimate(model.window(prevalence, 400, rng))
        large = model.draw((16_000, 4_000), rng)
        true = float(np.mean(head.apply(large.logits).decisions == large.labels))
        found = class_performances(calibration, head)["AC"].expected(of)
        covered += found.low <= true <= found.high
    assert covered >= 36
