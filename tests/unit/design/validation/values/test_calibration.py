"""Calibration in a validation: errors of calibrated predictions, calibration slope and O:E ratio."""

import numpy as np
import pytest

from lifelong_core.design import ModelOutputs, ValidationResult, validate
from lifelong_core.design.report.words import calibrated_in_words
from lifelong_core.design.validation.differences import OF_EXCESS, ResampledDifference
from lifelong_core.design.validation.values.calibration import (
    FEWEST_CASES,
    Agreement,
    CalibrationAgreement,
    calibration_agreement,
    debias,
)
from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.intervals import Resamples, value_bounds
from lifelong_core.design.validation.values.metric_values import evaluate_metric
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import Bootstrap, calibrated_reference, calibration_slope, observed_expected_ratio
from tests.unit.design.validations import metric, recommending


def drawn(size, sharpness=1.0, *, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(classes), size)
    labels = (rng.random((size, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    return labels, truth**sharpness / (truth**sharpness).sum(axis=1, keepdims=True)


def test_a_calibration_error_has_that_of_calibrated_predictions_beside_it():
    labels, probabilities = drawn(150)
    acronyms = ("ECE", "CWCE", "TCE", "MCE", "CE", "KCE", "ECE_KDE")
    result = validate(recommending(*acronyms), labels, probabilities=probabilities, replicates=20)
    for acronym in acronyms:
        found = result.value(acronym)
        draws = 60 if acronym in ("KCE", "ECE_KDE") else 200
        expected = calibrated_reference(acronym, labels, probabilities, draws=draws).draws
        expected = expected if expected.ndim == 1 else expected.mean(axis=1)
        reference = found.calibrated
        assert reference.mean == pytest.approx(expected.mean()), acronym
        assert reference.high == pytest.approx(np.quantile(expected, 0.95)), acronym
        assert reference.excess == pytest.approx(found.estimate - expected.mean()), acronym
        assert reference.draws == draws
        assert found.method == ("bca" if acronym == "KCE" else "debiased")


def test_other_metrics_have_none():
    labels, probabilities = drawn(60)
    found = validate(recommending("BS", "BA"), labels, probabilities=probabilities, replicates=20)
    assert [value.calibrated for value in found.values] == [None, None]
    assert calibrated_in_words(found.value("BS")) is None


def test_an_invalid_output_is_in_the_excess():
    labels, probabilities = drawn(100)
    decisions = probabilities.argmax(axis=1)
    decisions[:50] = -1
    part = validate(
        recommending("ECE"), labels, probabilities=probabilities, decisions=decisions, replicates=20
    ).value("ECE")
    valid = validate(recommending("ECE"), labels[50:], probabilities=probabilities[50:], replicates=20)
    assert part.calibrated.mean == pytest.approx(valid.value("ECE").calibrated.mean / 2, rel=0.1)
    assert part.calibrated.excess > 0.45


def test_the_interval_takes_off_at_most_the_error_by_chance():
    replicates = np.linspace(0.2, 0.3, 101)
    values = Bootstrap(np.array(0.2), replicates, ())
    found = value_bounds(values, level=0.9, limits=(0.0, 1.0), cases=100, chance=(0.08, 0.0))
    assert (found.low, found.high) == (pytest.approx(0.2 - 0.08 - 0.045), pytest.approx(0.2 + 0.045))
    assert found.method == "debiased"
    at_least = value_bounds(values, level=0.9, limits=(0.1, 0.22), cases=100, chance=(0.08, 0.0))
    assert (at_least.low, at_least.high) == (0.1, 0.22)


def test_the_difference_is_that_of_the_excess():
    labels, probabilities = drawn(200)
    too_sure = drawn(200, 2.5)[1]
    resamples = Resamples.draw(np.arange(200), replicates=50, seed=0)
    recipe = Recipe.of("ECE", metric("ECE"), weights=None, split=None, seed=0)
    new, current = (
        evaluate_metric(
            recipe,
            Samples.of(labels, ModelOutputs(probabilities=one), classes=3),
            resamples,
            level=0.95,
            subprocesses=(),
        )
        for one in (probabilities, too_sure)
    )
    found = ResampledDifference.of("ECE", new.parts[0], current.parts[0], level=0.95, is_same=False).document
    excesses = [one.values[0].calibrated.excess for one in (new, current)]
    assert found.estimate == pytest.approx(excesses[0] - excesses[1])
    assert found.notes[-1] == OF_EXCESS
    assert found.direction == "better"
    spread = [new.parts[0].compared.replicates - current.parts[0].compared.replicates]
    low, high = np.quantile(spread - np.mean(spread), [0.025, 0.975])
    assert found.low == pytest.approx(found.estimate - current.values[0].calibrated.mean - high)
    assert found.high == pytest.approx(found.estimate + new.values[0].calibrated.mean - low)


def test_a_debiased_value_keeps_the_spread():
    values = Bootstrap(np.array(0.3), np.array([0.4, np.nan, 0.6]), ())
    found = debias(values, 0.25)
    assert float(found.estimate) == pytest.approx(0.05)
    assert found.replicates == pytest.approx(np.array([-0.05, np.nan, 0.15]), nan_ok=True)


def test_the_reference_in_words():
    labels, probabilities = drawn(300)
    value = validate(recommending("ECE"), labels, probabilities=probabilities, replicates=20).value("ECE")
    reference = value.calibrated.model_copy(update={"mean": 0.05, "high": 0.08, "excess": -0.0123})
    shown = value.model_copy(update={"calibrated": reference})
    assert calibrated_in_words(shown) == "0.050 (95 % below 0.080), excess -0.012"


def draw(count, *, sharpness=1.6, seed=0):
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=count) - 0.5
    labels = (rng.random(count) < 1 / (1 + np.exp(-logits))).astype(int)
    positive = 1 / (1 + np.exp(-sharpness * logits))
    return labels, np.stack([1 - positive, positive], axis=1)


def of(labels, probabilities, groups=None) -> tuple[CalibrationAgreement, ...]:
    samples = Samples.of(labels, ModelOutputs(probabilities=probabilities), classes=2, groups=groups)
    return calibration_agreement(samples, level=0.95)


def holds(found: Agreement, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def test_the_estimates_are_the_metrics_and_the_intervals_hold_the_truth_of_an_over_confident_model():
    labels, probabilities = draw(300_000)
    truth = (1 / 1.6, observed_expected_ratio(labels, probabilities)[1])
    held = np.zeros(2)
    for seed in range(200):
        labels, probabilities = draw(200, seed=seed + 1)
        found = of(labels, probabilities)[1]
        assert found.slope.estimate == pytest.approx(calibration_slope(labels, probabilities)[1])
        assert found.observed_expected.estimate == pytest.approx(
            observed_expected_ratio(labels, probabilities)[1]
        )
        held += [holds(found.slope, truth[0]), holds(found.observed_expected, truth[1])]
    assert (held / 200 > 0.9).all()


def test_samples_of_a_group_count_as_often_as_they_are_independent():
    labels, probabilities = draw(200)
    alone = of(labels, probabilities)[1].slope
    copies = np.repeat(np.arange(200), 5)
    grouped = of(labels[copies], probabilities[copies], groups=copies)[1].slope
    assert grouped.estimate == pytest.approx(alone.estimate)
    assert (grouped.low, grouped.high) == pytest.approx((alone.low, alone.high), rel=1e-6)


def test_few_cases_and_separated_classes_have_no_interval():
    labels, probabilities = draw(400)
    of_class = np.flatnonzero(labels == 1)
    for count in (FEWEST_CASES - 1, FEWEST_CASES):
        rows = np.concatenate([np.flatnonzero(labels == 0), of_class[:count]])
        found = of(labels[rows], probabilities[rows])[1]
        assert (found.slope.low is None) == (found.observed_expected.low is None) == (count < FEWEST_CASES)
        assert found.slope.estimate is not None
    perfect = np.where(np.eye(2)[labels] == 1, 0.9, 0.1)
    assert of(labels, perfect)[1].slope == Agreement(estimate=None, low=None, high=None)


@pytest.mark.parametrize("is_assessed", [True, False])
def test_a_validation_holds_it_where_calibration_is_assessed(is_assessed):
    labels, probabilities = draw(80)
    advised = recommending("AC", number_of_classes=2, calibration_assessment=is_assessed)
    result = validate(advised, labels, probabilities=probabilities, replicates=20)
    assert [one.class_index for one in result.calibration_agreement] == ([0, 1] if is_assessed else [])
    assert ValidationResult.from_json(result.to_json()) == result
