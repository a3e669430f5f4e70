import numpy as np
import pytest

from lifelong_core.deploy.performance.labelled.calibration_drift import calibration_drift
from lifelong_core.values.errors import InvalidInputError


def served(rng, size, *, slope=1.0, moved=0.0, classes=3):
    """Probabilities whose calibrated version has this slope and this bias of class 0; labels from that version."""
    scores = rng.normal(size=(size, classes)) * 1.5
    right = slope * scores
    right[:, 0] += moved
    labels = (right + rng.gumbel(size=right.shape)).argmax(axis=1)
    probabilities = np.exp(scores)
    return probabilities / probabilities.sum(axis=1, keepdims=True), labels


@pytest.mark.parametrize("size", [15, 300])
@pytest.mark.parametrize("variant", ["plain", "weighted", "grouped"])
def test_calibrated_probabilities_are_rejected_at_the_level(size, variant):
    rng = np.random.default_rng(size)
    rejected = 0
    for _ in range(300):
        probabilities, labels = served(rng, size)
        propensities = groups = None
        if variant == "weighted":
            propensities = 0.1 + 0.9 * rng.random(size)
        if variant == "grouped":
            probabilities, labels = probabilities.repeat(3, axis=0), labels.repeat(3)
            groups = np.arange(size).repeat(3)
        found = calibration_drift(probabilities, labels, propensities=propensities, groups=groups, level=0.05)
        rejected += found.rejected
    assert rejected / 300 <= 0.09
    assert rejected / 300 >= 0.005


@pytest.mark.parametrize(("slope", "moved"), [(0.6, 0.0), (1.0, 0.8)])
def test_drifts_are_found_and_measured(slope, moved):
    found = calibration_drift(*served(np.random.default_rng(1), 2000, slope=slope, moved=moved))
    assert found.rejected
    assert found.slope == pytest.approx(slope, abs=0.1)
    assert found.intercepts == pytest.approx(moved * np.array([2, -1, -1]) / 3, abs=0.15)
    assert found.text.startswith("The probabilities are not calibrated")
    assert not moved or "class 0 is more frequent than they say" in found.text


def test_transcription_of_the_binary_score_test():
    probabilities, labels = served(np.random.default_rng(2), 80, slope=0.7, classes=2)
    found = calibration_drift(probabilities, labels)
    p = probabilities[:, 1]
    logit = np.log(p / (1 - p))
    design = np.column_stack([logit, np.ones(80)])
    score = design.T @ (labels - p)
    information = design.T @ (design * (p * (1 - p))[:, np.newaxis])
    assert found.statistic == pytest.approx(score @ np.linalg.solve(information, score))


def test_certain_probabilities_and_missing_classes_are_no_error():
    found = calibration_drift(np.eye(4)[[0, 1, 0]], [0, 1, 0])
    assert not found.rejected


def test_groups_that_repeat_a_sample_add_no_evidence():
    probabilities, labels = served(np.random.default_rng(3), 60, slope=0.5)
    once = calibration_drift(probabilities, labels)
    naive = calibration_drift(probabilities.repeat(10, axis=0), labels.repeat(10))
    grouped = calibration_drift(
        probabilities.repeat(10, axis=0), labels.repeat(10), groups=np.arange(60).repeat(10)
    )
    assert naive.p_value < once.p_value < 2 * grouped.p_value + 0.05


def test_errors_name_the_field():
    with pytest.raises(InvalidInputError, match="labels"):
        calibration_drift(np.zeros((0, 2)), [])
    with pytest.raises(InvalidInputError, match="labels"):
        calibration_drift([[0.5, 0.5]], [0, 1])
    with pytest.raises(InvalidInputError, match="probabilities"):
        calibration_drift([[0.5, 0.6]], [0])
