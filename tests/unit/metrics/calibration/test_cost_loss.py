import math

import numpy as np
import pytest
from scipy import optimize, special

from lifelong_core.metrics import ec_calibration_loss
from lifelong_core.metrics.calibration import cost_loss
from lifelong_core.metrics.calibration.cost_loss import DEFAULT_FOLDS
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import simulated

COSTS = np.array([[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [20.0, 3.0, 0.0]])


def recalibrated_by_definition(labels, probabilities, fold):
    """softmax(t log p + b) with the least log loss on all other folds, by a general optimiser."""
    logs, found = np.log(probabilities), np.empty_like(probabilities)
    for one in np.unique(fold):
        own = fold == one

        def loss(parameters, own=own):
            scores = parameters[0] * logs[~own] + np.append(parameters[1:], 0)
            return -special.log_softmax(scores, axis=1)[np.arange((~own).sum()), labels[~own]].mean()

        best = optimize.minimize(loss, np.eye(probabilities.shape[1])[0], options={"gtol": 1e-9}).x
        found[own] = special.softmax(best[0] * logs[own] + np.append(best[1:], 0), axis=1)
    return found


@pytest.mark.parametrize("prevalence", [None, [0.2, 0.5, 0.3]])
@pytest.mark.parametrize("sharpness", [0.4, 1.0, 3.0])
def test_it_is_the_cost_of_decisions_before_less_after_affine_scaling(sharpness, prevalence):
    labels, probabilities = simulated(300, sharpness=sharpness)
    fold = np.random.default_rng(4).permutation(300) % DEFAULT_FOLDS
    shares = np.bincount(labels) / 300
    wanted = shares if prevalence is None else np.array(prevalence)

    def cost(given):
        decisions = (given * (wanted / shares) @ COSTS).argmin(axis=1)
        paid = COSTS[labels, decisions]
        return sum(wanted[k] * paid[labels == k].mean() for k in range(3))

    expected = cost(probabilities) - cost(recalibrated_by_definition(labels, probabilities, fold))
    found = ec_calibration_loss(labels, probabilities, COSTS, prevalence=prevalence, rng=4)
    assert found == pytest.approx(expected, abs=1e-9)


def test_it_is_0_on_average_for_a_calibrated_model_and_large_for_an_over_confident_one():
    losses = [ec_calibration_loss(*simulated(400, seed=seed), COSTS) for seed in range(40)]
    assert abs(np.mean(losses)) < 0.03
    assert ec_calibration_loss(*simulated(4000, sharpness=4), COSTS) > 0.05
    assert ec_calibration_loss(*simulated(4000, sharpness=4)) == pytest.approx(0, abs=0.01)


def test_a_group_is_in_one_fold():
    """Copies of a case in other folds would let it recalibrate itself."""
    labels, probabilities = simulated(40, sharpness=3)
    copies = np.repeat(np.arange(40), 5)
    grouped = ec_calibration_loss(labels[copies], probabilities[copies], COSTS, groups=copies, rng=2)
    assert grouped == pytest.approx(ec_calibration_loss(labels, probabilities, COSTS, rng=2), abs=1e-6)


def test_it_is_undefined_without_cases_to_fit_on_or_without_a_class_of_use():
    for size in (0, 1):
        assert math.isnan(ec_calibration_loss([0] * size, np.array([[0.8, 0.2]] * size).reshape(size, 2)))
    given = [[0.8, 0.2], [0.6, 0.4], [0.7, 0.3]]
    assert math.isnan(ec_calibration_loss([0, 0, 0], given, prevalence=[0.5, 0.5]))
    assert ec_calibration_loss([0, 0, 0], given) == 0
    assert math.isnan(ec_calibration_loss([0, 1, 0], given, groups=[1, 1, 1]))


def test_many_cases_are_recalibrated_by_some_of_them(monkeypatch):
    cases = simulated(3000, sharpness=3)
    whole = ec_calibration_loss(*cases, COSTS)
    monkeypatch.setattr(cost_loss, "MOST_FITTED", 500)
    assert ec_calibration_loss(*cases, COSTS) == pytest.approx(whole, rel=0.2)
    assert ec_calibration_loss(*cases, COSTS) != whole


def test_certain_predictions_are_recalibrated_too():
    labels, decided = (
        np.arange(200) % 2,
        np.where(np.arange(200) % 10 < 2, 1 - np.arange(200) % 2, np.arange(200) % 2),
    )
    certain = np.eye(2)[decided]
    assert ec_calibration_loss(labels, certain, [[0, 1], [50, 0]]) > 3


@pytest.mark.parametrize(
    ("options", "field"),
    [({"folds": 1}, "folds"), ({"costs": [[0, 1]]}, "costs"), ({"groups": [1]}, "groups")],
)
def test_bad_arguments_are_named(options, field):
    with pytest.raises(InvalidInputError) as caught:
        ec_calibration_loss([0, 1], [[0.5, 0.5], [0.4, 0.6]], **options)
    assert caught.value.field == field
