import numpy as np
import pytest

from lifelong_core.metrics import compute_metrics, marginal_calibration_error
from lifelong_core.metrics.calibration.reference import (
    CALIBRATION_ERRORS,
    calibrated_reference,
    draw_labels,
    error_of_labels,
    within_group_correlation,
)
from lifelong_core.metrics.inputs import Parameters
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import simulated

PARAMETERS = [
    {},
    {"norm": 2},
    {"bins": 4, "right_closed": True},
    {"bandwidth": 0.3},
    {"subsample": 20},
    {"estimator": "root"},
]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_error_of_other_labels_is_the_metric_of_these(parameters):
    """Apart from a chosen bandwidth, which is that of the given labels."""
    labels, probabilities = simulated(80)
    probabilities = probabilities.round(1)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    others, chosen = simulated(80, seed=3)[0], Parameters.of(parameters)
    options = {"bins": chosen.bins_or_default, "norm": chosen.norm, "right_closed": chosen.right_closed}
    for acronym in CALIBRATION_ERRORS:
        error = error_of_labels(acronym, labels, probabilities, chosen, seed=0)
        drawn = labels if acronym == "ECE_KDE" and "bandwidth" not in parameters else others
        if acronym == "CWCE":
            expected = marginal_calibration_error(drawn, probabilities, **options)
        else:
            given = {"labels": drawn, "probabilities": probabilities, "rng": 0, **parameters}
            expected = compute_metrics([acronym], **given)[acronym]
        np.testing.assert_allclose(error(drawn), expected, atol=1e-6, err_msg=acronym)


def test_the_reference_is_the_error_of_labels_from_the_probabilities():
    labels, probabilities = simulated(200, sharpness=3)
    found = calibrated_reference("ECE", labels, probabilities, draws=400, rng=1)
    rng = np.random.default_rng(5)
    brute_force = [
        compute_metrics(
            ["ECE"],
            labels=rng.multinomial(1, probabilities).argmax(axis=1),
            probabilities=probabilities,
        )["ECE"]
        for _ in range(400)
    ]
    error = np.std(brute_force) * np.sqrt(2 / 400)
    assert found.mean == pytest.approx(np.mean(brute_force), abs=4 * error)
    assert found.quantile() == pytest.approx(np.quantile(brute_force, 0.95), rel=0.08)
    assert found.correlation == 0
    assert compute_metrics(["ECE"], labels=labels, probabilities=probabilities)["ECE"] > found.quantile()


def test_calibrated_predictions_exceed_their_reference_by_nothing_on_average():
    for acronym in ("ECE", "CWCE", "TCE", "CE"):
        excesses, above = [], 0
        for seed in range(60):
            labels, probabilities = simulated(150, seed=seed)
            found = calibrated_reference(acronym, labels, probabilities, draws=60)
            error = compute_metrics([acronym], labels=labels, probabilities=probabilities)[acronym]
            excesses.append(error - found.mean.mean())
            above += error > np.quantile(found.draws.reshape(60, -1).mean(axis=1), 0.95)
        assert abs(np.mean(excesses)) < 3 * np.std(excesses) / np.sqrt(60)
        assert above <= 9  # of 60, 3 are expected


def test_labels_of_a_group_that_agree_make_the_error_by_chance_larger():
    rng = np.random.default_rng(0)
    unit = np.arange(600) // 10
    probabilities = np.clip(0.1 + rng.normal(size=(600, 1)) / 20, 0, 1)
    probabilities = np.concatenate([1 - probabilities, probabilities], axis=1)
    labels = draw_labels(probabilities, unit, 1.0, rng)
    together = calibrated_reference("ECE", labels, probabilities, groups=unit)
    alone = calibrated_reference("ECE", labels, probabilities)
    assert together.correlation > 0.4
    assert together.mean > 1.5 * alone.mean


@pytest.mark.parametrize("is_alike", [True, False])
def test_the_correlation_of_a_group_is_found(is_alike):
    rng = np.random.default_rng(1)
    unit = np.arange(20_000) // 4
    of_units = rng.dirichlet([1, 1, 1], 5_000)[unit]
    probabilities = of_units if is_alike else 0.6 * of_units + 0.4 * rng.dirichlet([1, 1, 1], 20_000)
    for correlation in (0.0, 0.3, 0.8):
        labels = draw_labels(probabilities, unit, correlation, rng)
        assert within_group_correlation(labels, probabilities, unit) == pytest.approx(correlation, abs=0.04)
        shares = np.bincount(labels, minlength=3) / labels.size
        np.testing.assert_allclose(shares, probabilities.mean(axis=0), atol=0.03)


def test_it_is_seeded_and_classes_have_their_own():
    labels, probabilities = simulated(50)
    first, second = (calibrated_reference("MCE", labels, probabilities, bins=5, rng=3).draws for _ in "ab")
    np.testing.assert_array_equal(first, second)
    assert first.shape == (200, 3)
    assert not np.array_equal(first, calibrated_reference("MCE", labels, probabilities, bins=5).draws)


@pytest.mark.parametrize(
    ("acronym", "labels", "options", "field"),
    [
        ("BS", [0, 1], {}, "acronym"),
        ("ECE", [0, 1], {"draws": 0}, "draws"),
        ("ECE", [0, 1], {"bin": 3}, "bin"),
        ("ECE", [0, 1], {"groups": [1]}, "groups"),
        ("ECE", [0, 1, 1], {}, "probabilities"),
    ],
)
def test_bad_arguments_are_named(acronym, labels, options, field):
    with pytest.raises(InvalidInputError) as caught:
        calibrated_reference(acronym, labels, [[0.5, 0.5], [0.4, 0.6]], **options)
    assert caught.value.field == field


def test_one_sample_has_no_reference():
    with pytest.raises(InvalidInputError) as caught:
        calibrated_reference("ECE", [0], [[0.5, 0.5]])
    assert caught.value.field == "labels"
