import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from lifelong_core.metrics.calibration.binned import canonical_calibration_error
from lifelong_core.metrics.scores import samples
from lifelong_core.metrics.scores.scoring_rules import (
    brier_decomposition,
    brier_score,
    brier_skill_score,
    negative_log_likelihood,
    root_brier_score,
)
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import labelled, simulated

ALL = (brier_score, root_brier_score, brier_skill_score, negative_log_likelihood)


@given(labelled())
def test_are_the_means_of_their_scoring_rules(cases):
    """Direct transcriptions of thesis Def. 2.73 and 2.74."""
    labels, probabilities = cases
    rows = list(zip(labels, probabilities, strict=True))
    brier = np.mean([sum(((k == y) - p[k]) ** 2 for k in range(len(p))) for y, p in rows])
    likelihood = math.prod(float(p[y]) for y, p in rows)
    assert brier_score(labels, probabilities) == pytest.approx(brier, abs=1e-12)
    assert root_brier_score(labels, probabilities) == pytest.approx(math.sqrt(brier), abs=1e-12)
    expected = -math.log(likelihood) / len(rows) if likelihood else math.inf
    assert negative_log_likelihood(labels, probabilities) == pytest.approx(expected, abs=1e-12)


def test_scikit_learn_clips_and_halves():
    labels, probabilities = [1, 0], np.array([[1.0, 0.0], [1.0, 0.0]])
    assert sklearn_metrics.log_loss(labels, probabilities) == pytest.approx(18.02, abs=0.01)
    assert negative_log_likelihood(labels, probabilities) == math.inf
    assert sklearn_metrics.brier_score_loss(labels, probabilities[:, 1]) == 0.5
    assert brier_score(labels, probabilities) == 1


@given(labelled())
def test_the_parts_of_the_brier_score_add_up(cases):
    parts = brier_decomposition(*cases)
    total = parts.uncertainty - parts.resolution + parts.reliability
    assert total == pytest.approx(brier_score(*cases), abs=1e-12)
    assert parts.reliability == pytest.approx(canonical_calibration_error(*cases, norm=2), abs=1e-12)
    assert -1e-15 <= parts.resolution <= parts.uncertainty + 1e-12
    assert parts.uncertainty <= 1


@given(labelled())
def test_the_root_brier_score_bounds_the_rooted_canonical_error(cases):
    assert math.sqrt(canonical_calibration_error(*cases, norm=2)) <= root_brier_score(*cases) + 1e-12


def test_the_root_brier_score_does_not_bound_the_canonical_error_of_norm_1():
    always_wrong = [0, 1], [[0.0, 1.0], [1.0, 0.0]]
    assert canonical_calibration_error(*always_wrong) == 2
    assert root_brier_score(*always_wrong) == math.sqrt(2)


@given(labelled(), st.integers(2, 3), st.randoms(use_true_random=False))
def test_copies_and_names_of_classes_change_nothing(cases, copies, random):
    labels, probabilities = cases
    order = list(range(probabilities.shape[1]))
    random.shuffle(order)
    renamed = np.tile(np.argsort(order)[labels], copies), np.tile(probabilities[:, order], (copies, 1))
    for metric in ALL:
        np.testing.assert_allclose(metric(*renamed), metric(*cases), atol=1e-9)
    here, there = brier_decomposition(*cases), brier_decomposition(*renamed)
    assert here.resolution == pytest.approx(there.resolution, abs=1e-12)
    assert here.reliability == pytest.approx(there.reliability, abs=1e-12)


@given(labelled())
def test_stay_in_their_ranges(cases):
    assert 0 <= brier_score(*cases) <= 2
    assert 0 <= root_brier_score(*cases) <= math.sqrt(2)
    skill = brier_skill_score(*cases)
    assert skill <= 1 or math.isnan(skill)
    assert negative_log_likelihood(*cases) >= 0


def test_predicting_the_class_shares_has_no_skill_and_is_calibrated():
    labels, probabilities = [0, 1, 1, 2], [[0.25, 0.5, 0.25]] * 4
    assert brier_skill_score(labels, probabilities) == 0
    parts = brier_decomposition(labels, probabilities)
    assert parts.reliability == parts.resolution == 0


def test_certain_and_right_is_exactly_0():
    labels, probabilities = [0, 1], [[1.0, 0.0], [0.0, 1.0]]
    assert brier_score(labels, probabilities) == root_brier_score(labels, probabilities) == 0
    assert math.copysign(1, negative_log_likelihood(labels, probabilities)) == 1
    assert brier_skill_score(labels, probabilities) == 1


def test_nearly_certain_and_right_keeps_its_digits():
    assert root_brier_score([0], [[1 - 2.0**-40, 2.0**-40]]) == pytest.approx(math.sqrt(2) * 2.0**-40)


def test_skill_where_all_cases_are_of_one_class():
    assert brier_skill_score([0, 0], [[1.0, 0.0], [0.9, 0.1]]) == -math.inf
    assert math.isnan(brier_skill_score([0, 0], [[1.0, 0.0], [1.0, 0.0]]))


def test_are_undefined_without_a_case():
    nothing = np.empty((0, 2))
    for metric in ALL:
        assert math.isnan(metric([], nothing))
    parts = brier_decomposition([], nothing)
    assert math.isnan(parts.uncertainty)
    assert math.isnan(parts.resolution)
    assert math.isnan(parts.reliability)


def test_different_rows_of_the_same_hash_are_not_mixed_up(monkeypatch):
    cases = simulated(50)
    repeated = np.tile(cases[0], 2), np.tile(cases[1], (2, 1))
    expected = brier_decomposition(*repeated)
    monkeypatch.setattr(samples, "MULTIPLIER", np.uint64(0))  # every row has the same hash
    found = brier_decomposition(*repeated)
    assert found.resolution == pytest.approx(expected.resolution)
    assert found.reliability == pytest.approx(expected.reliability)


def test_bad_arguments_are_named():
    for metric in (*ALL, brier_decomposition):
        with pytest.raises(InvalidInputError) as caught:
            metric([0, 1], [[0.5, 0.5]])
        assert caught.value.field == "probabilities"
