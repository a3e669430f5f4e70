"""Calibration slope and O:E ratio in a validation: intervals, groups, few cases."""

import numpy as np
import pytest

from lifelong_core.design import ModelOutputs, ValidationResult, validate
from lifelong_core.design.validation.values.calibration import (
    FEWEST_CASES,
    Agreement,
    CalibrationAgreement,
    calibration_agreement,
)
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import calibration_slope, observed_expected_ratio
from tests.unit.design.validations import recommending


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
