import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics.calibration.binned import (
    bin_edges,
    canonical_calibration_error,
    class_wise_calibration_error,
    expected_calibration_error,
    marginal_calibration_error,
    reliability_diagram,
    top_label_calibration_error,
)
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import labelled, simulated

ALL = (
    expected_calibration_error,
    class_wise_calibration_error,
    marginal_calibration_error,
    top_label_calibration_error,
    canonical_calibration_error,
)


def error_by_definition(scores, hits, groups, norm):
    """Sum over the groups of P[group] |mean score - share of hits|**norm."""
    total = 0.0
    for group in set(groups):
        inside = [i for i, other in enumerate(groups) if other == group]
        confidence = sum(scores[i] for i in inside) / len(inside)
        frequency = sum(hits[i] for i in inside) / len(inside)
        total += len(inside) / len(groups) * abs(confidence - frequency) ** norm
    return total


def bin_by_definition(score, bins, right_closed):
    """Index of the bin of a score in exact arithmetic with the correctly rounded edges i / bins."""
    edges = [Fraction(i / bins) for i in range(bins + 1)]
    if right_closed:
        return max(0, next(i for i, edge in enumerate(edges) if Fraction(score) <= edge) - 1)
    return min(bins - 1, max(i for i, edge in enumerate(edges) if Fraction(score) >= edge))


@given(labelled(), st.sampled_from([1, 2, 3, 5, 10, 15]), st.sampled_from([1, 2]), st.booleans())
def test_in_bins_they_are_as_defined(cases, bins, norm, right_closed):
    """Direct transcriptions of thesis Def. 2.65, 2.66 and 2.68."""
    labels, probabilities = cases
    decisions = [row.tolist().index(max(row)) for row in probabilities]
    confidence = [max(row) for row in probabilities]
    places = [bin_by_definition(score, bins, right_closed) for score in confidence]
    top = error_by_definition(confidence, decisions == labels, places, norm)
    options = {"bins": bins, "norm": norm, "right_closed": right_closed}
    assert expected_calibration_error(*cases, **options) == pytest.approx(top, abs=1e-12)
    assert top_label_calibration_error(*cases, **options) == pytest.approx(top, abs=1e-12)
    by_class = []
    for k, scores in enumerate(probabilities.T):
        places = [bin_by_definition(score, bins, right_closed) for score in scores]
        by_class.append(error_by_definition(scores, labels == k, places, norm))
    np.testing.assert_allclose(marginal_calibration_error(*cases, **options), by_class, atol=1e-12)
    assert class_wise_calibration_error(*cases, **options) == pytest.approx(np.mean(by_class), abs=1e-12)


@given(labelled(), st.sampled_from([1, 2, 1.5]))
def test_given_equal_predictions_they_are_as_defined(cases, norm):
    """Direct transcriptions of thesis Def. 2.64 and 2.65 (as corrected: the decided class of each case)."""
    labels, probabilities = cases
    decisions = [row.tolist().index(max(row)) for row in probabilities]
    confidence = [max(row) for row in probabilities]
    top = error_by_definition(confidence, decisions == labels, confidence, norm)
    assert top_label_calibration_error(*cases, norm=norm) == pytest.approx(top, abs=1e-12)
    by_class = [
        error_by_definition(scores, labels == k, scores.tolist(), norm)
        for k, scores in enumerate(probabilities.T)
    ]
    np.testing.assert_allclose(marginal_calibration_error(*cases, norm=norm), by_class, atol=1e-12)
    rows = [tuple(row) for row in probabilities]
    canonical = sum(
        error_by_definition(scores, labels == k, rows, norm) for k, scores in enumerate(probabilities.T)
    )
    assert canonical_calibration_error(*cases, norm=norm) == pytest.approx(canonical, abs=1e-12)


@given(labelled(), st.integers(1, 20))
def test_binning_underestimates_and_canonical_is_the_strongest(cases, bins):
    top, by_class = top_label_calibration_error(*cases), marginal_calibration_error(*cases)
    assert expected_calibration_error(*cases, bins=bins) <= top + 1e-12
    assert (marginal_calibration_error(*cases, bins=bins) <= by_class + 1e-12).all()
    assert by_class.sum() <= canonical_calibration_error(*cases) + 1e-12
    assert 0 <= top <= 1
    assert (by_class >= 0).all()
    assert (by_class <= 1).all()
    assert canonical_calibration_error(*cases) <= 2 + 1e-12


@given(labelled(), st.integers(2, 3), st.randoms(use_true_random=False))
def test_copies_and_names_of_classes_change_nothing(cases, copies, random):
    labels, probabilities = cases
    order = list(range(probabilities.shape[1]))
    random.shuffle(order)
    renamed = np.tile(np.argsort(order)[labels], copies), np.tile(probabilities[:, order], (copies, 1))
    for metric in (class_wise_calibration_error, canonical_calibration_error):
        assert metric(*renamed) == pytest.approx(metric(*cases), abs=1e-12)
    for bins in (None, 10):
        np.testing.assert_allclose(
            marginal_calibration_error(*renamed, bins=bins),
            marginal_calibration_error(*cases, bins=bins)[order],
            atol=1e-12,
        )
    copied = np.tile(labels, copies), np.tile(probabilities, (copies, 1))
    for metric in (expected_calibration_error, top_label_calibration_error):
        assert metric(*copied) == pytest.approx(metric(*cases), abs=1e-12)


def test_edges_are_rounded_correctly():
    """numpy.linspace puts 0.3, 0.6 and 0.7 one unit in the last place too high, and so in the bin below."""
    assert bin_edges(10).tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert np.linspace(0, 1, 11)[3] != 0.3
    for tenth in range(11):
        diagram = reliability_diagram([0], [[tenth / 10, 1 - tenth / 10]], positive=0, bins=10)
        assert diagram.counts[min(tenth, 9)] == 1
        diagram = reliability_diagram(
            [0], [[tenth / 10, 1 - tenth / 10]], positive=0, bins=10, right_closed=True
        )
        assert diagram.counts[max(tenth - 1, 0)] == 1


def test_a_reliability_diagram_of_a_class():
    labels, probabilities = [0, 1, 1, 0], [[0.75, 0.25], [0.25, 0.75], [0.0, 1.0], [0.0, 1.0]]
    diagram = reliability_diagram(labels, probabilities, positive=1, bins=4)
    assert diagram.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert diagram.counts.tolist() == [0, 1, 0, 3]
    np.testing.assert_allclose(diagram.confidence, [np.nan, 0.25, np.nan, 2.75 / 3])
    np.testing.assert_allclose(diagram.frequency, [np.nan, 0, np.nan, 2 / 3])
    assert diagram.error() == pytest.approx(marginal_calibration_error(labels, probabilities, bins=4)[1])
    top = reliability_diagram(labels, probabilities, bins=4)
    assert top.error() == expected_calibration_error(labels, probabilities, bins=4)


def test_a_calibrated_model_has_less_error_than_an_over_confident_one():
    for metric in (expected_calibration_error, class_wise_calibration_error):
        assert metric(*simulated(5000)) < 0.02 < 0.08 < metric(*simulated(5000, sharpness=3))


def test_for_two_classes_top_label_calibrated_is_not_class_wise_calibrated():
    labels = [0] * 8 + [1] * 2 + [0] * 4 + [1] * 6
    probabilities = [[0.7, 0.3]] * 10 + [[0.3, 0.7]] * 10
    assert top_label_calibration_error(labels, probabilities) == pytest.approx(0, abs=1e-12)
    assert marginal_calibration_error(labels, probabilities) == pytest.approx([0.1, 0.1])


def test_ties_are_decided_for_the_lowest_class():
    assert expected_calibration_error([0], [[0.5, 0.5]]) == expected_calibration_error([1], [[0.5, 0.5]])
    assert expected_calibration_error([0, 0, 1], [[0.4, 0.4, 0.2]] * 3) == pytest.approx(2 / 3 - 0.4)


def test_a_sum_of_almost_1_stays_in_the_last_bin():
    diagram = reliability_diagram([0], [[1.00005, 0.0]], bins=10)
    assert diagram.counts.tolist() == [0] * 9 + [1]


def test_are_undefined_without_a_case():
    for metric in ALL:
        assert np.isnan(metric([], np.empty((0, 2)))).all()
    diagram = reliability_diagram([], np.empty((0, 2)), bins=3)
    assert diagram.counts.tolist() == [0, 0, 0]
    assert math.isnan(diagram.error())


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"bins": 0}, "bins"),
        ({"bins": 2.5}, "bins"),
        ({"bins": math.nan}, "bins"),
        ({"bins": 10**9}, "bins"),
        ({"norm": 0.5}, "norm"),
        ({"norm": math.nan}, "norm"),
        ({"norm": math.inf}, "norm"),
    ],
)
def test_bad_arguments_are_named(options, field):
    for metric in ALL[:4]:
        with pytest.raises(InvalidInputError) as caught:
            metric([0], [[0.5, 0.5]], **options)
        assert caught.value.field == field


def test_canonical_names_bad_arguments_too():
    with pytest.raises(InvalidInputError) as caught:
        canonical_calibration_error([0], [[0.5, 0.5]], norm=0)
    assert caught.value.field == "norm"


def test_a_bad_class_is_named():
    with pytest.raises(InvalidInputError) as caught:
        reliability_diagram([0], [[0.5, 0.5]], positive=2)
    assert caught.value.field == "positive"
