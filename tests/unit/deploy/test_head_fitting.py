from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, fit_head
from lifelong_core.deploy.head_fitting import FOLDS, crossfitted_output, held_out_output
from lifelong_core.deploy.labeled import stratified_folds

COSTS = np.array([[0, 1, 1], [1, 0, 1], [4, 4, 0.0]])
TARGET = np.array([0.5, 0.375, 0.125])  # sums to 1 exactly


@pytest.fixture
def calibration(population):
    return population(3, 1.5).draw([40, 60, 50], np.random.default_rng(0))


def test_every_sample_is_judged_by_the_head_of_the_other_folds(calibration):
    found = crossfitted_output(calibration, COSTS, TARGET)
    folds = stratified_folds(calibration, FOLDS)
    for row in (0, 17, 149):
        rest = calibration.select(folds != folds[row])
        alone = fit_head(rest, COSTS, target_prevalence=TARGET).apply(calibration.logits[row : row + 1])
        assert found.probabilities[row].tolist() == alone.probabilities[0].tolist()
        assert found.decisions[row] == alone.decisions[0]
        assert found.expected_costs[row].tolist() == alone.expected_costs[0].tolist()


def test_a_head_that_was_fitted_on_these_samples_is_fitted_again_without_them(calibration):
    head = fit_head(calibration, COSTS, target_prevalence=TARGET)
    assert held_out_output(calibration, head) == crossfitted_output(calibration, COSTS, TARGET)
    assert held_out_output(calibration, head) != head.apply(calibration.logits)


def test_any_other_head_is_applied_as_it_is(calibration):
    head = fit_head(calibration, COSTS, target_prevalence=TARGET)
    other = replace(head, bias=head.bias + np.array([0.01, 0, 0]))
    assert held_out_output(calibration, other) == other.apply(calibration.logits)


def test_where_a_class_has_one_sample_there_are_no_folds(calibration):
    lonely = LabeledLogits(calibration.logits[:81], np.append(np.arange(80) % 2, 2))
    head = fit_head(lonely, COSTS)
    assert held_out_output(lonely, head) == head.apply(lonely.logits)
