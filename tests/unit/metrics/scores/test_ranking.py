import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from lifelong_core.metrics.scores.ranking import (
    auroc,
    average_precision,
    precision_recall_curve,
    rank,
    roc_curve,
)
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import labelled, simulated


@given(labelled())
def test_auroc_is_the_share_of_ordered_pairs(cases):
    labels, probabilities = cases
    for k, found in enumerate(auroc(labels, probabilities)):
        inside, outside = probabilities[labels == k, k], probabilities[labels != k, k]
        if inside.size == 0 or outside.size == 0:
            assert np.isnan(found)
            continue
        higher = (inside[:, np.newaxis] > outside).mean()
        tied = (inside[:, np.newaxis] == outside).mean()
        assert found == pytest.approx(higher + tied / 2, abs=1e-12)


@given(labelled())
def test_average_precision_is_the_sum_over_descending_thresholds(cases):
    """A direct transcription of thesis Def. 2.56, from the threshold inf on."""
    labels, probabilities = cases
    for k, found in enumerate(average_precision(labels, probabilities)):
        scores, positive = probabilities[:, k], labels == k
        if not positive.any():
            assert np.isnan(found)
            continue
        total, recall_before = 0.0, 0.0
        for threshold in sorted(set(scores), reverse=True):
            decided = scores >= threshold
            recall = (decided & positive).sum() / positive.sum()
            total += (recall - recall_before) * (decided & positive).sum() / decided.sum()
            recall_before = recall
        assert found == pytest.approx(total, abs=1e-12)


def test_agree_with_scikit_learn():
    labels, probabilities = simulated(500)
    probabilities = probabilities.round(2)  # ties
    probabilities[:, 2] = 1 - probabilities[:, :2].sum(axis=1)
    probabilities = np.abs(probabilities)
    areas, precisions = auroc(labels, probabilities), average_precision(labels, probabilities)
    for k in range(3):
        positive, scores = labels == k, probabilities[:, k]
        assert areas[k] == pytest.approx(sklearn_metrics.roc_auc_score(positive, scores), abs=1e-12)
        expected = sklearn_metrics.average_precision_score(positive, scores)
        assert precisions[k] == pytest.approx(expected, abs=1e-12)

        roc = roc_curve(labels, probabilities, positive=k)
        expected = sklearn_metrics.roc_curve(positive, scores, drop_intermediate=False)
        for ours, theirs in zip(
            (roc.false_positive_rate, roc.true_positive_rate, roc.thresholds), expected, strict=True
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
        assert (
            roc.area
            == areas[k]
            == pytest.approx(np.trapezoid(roc.true_positive_rate, roc.false_positive_rate))
        )

        # Theirs ascends and ends with a point of recall 0 that has no threshold.
        curve = precision_recall_curve(labels, probabilities, positive=k)
        precision, recall, thresholds = sklearn_metrics.precision_recall_curve(positive, scores)
        np.testing.assert_allclose(curve.precision, precision[-2::-1], atol=1e-12)
        np.testing.assert_allclose(curve.recall, recall[-2::-1], atol=1e-12)
        np.testing.assert_allclose(curve.thresholds, thresholds[::-1])
        assert curve.average_precision == precisions[k]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30),
    st.lists(st.floats(-1e9, 1e9), min_size=6, max_size=6, unique=True),
)
def test_only_the_order_of_the_scores_matters(cases, levels):
    places, positive = (np.array(column) for column in zip(*cases, strict=True))
    here, there = rank(places.astype(float), positive), rank(np.sort(levels)[places], positive)
    np.testing.assert_array_equal(here.true_positives, there.true_positives)
    np.testing.assert_array_equal(here.false_positives, there.false_positives)
    np.testing.assert_equal(here.roc_area, there.roc_area)
    np.testing.assert_equal(here.average_precision, there.average_precision)


@given(labelled(), st.randoms(use_true_random=False))
def test_classes_can_be_renamed(cases, random):
    labels, probabilities = cases
    order = list(range(probabilities.shape[1]))
    random.shuffle(order)
    renamed = np.argsort(order)[labels]
    for metric in (auroc, average_precision):
        np.testing.assert_array_equal(
            metric(renamed, probabilities[:, order]), metric(labels, probabilities)[order]
        )


@given(labelled(), st.integers(2, 4))
def test_copies_and_the_order_of_the_cases_change_nothing(cases, copies):
    labels, probabilities = cases
    for metric in (auroc, average_precision):
        value = metric(labels, probabilities)
        np.testing.assert_allclose(
            metric(np.tile(labels, copies), np.tile(probabilities, (copies, 1))), value, atol=1e-12
        )
        np.testing.assert_allclose(metric(labels[::-1], probabilities[::-1]), value, atol=1e-12)
        assert ((value >= 0) & (value <= 1) | np.isnan(value)).all()


def test_a_constant_score_gets_a_half_and_the_prevalence():
    labels, probabilities = [0, 0, 0, 1], [[0.7, 0.3]] * 4
    assert auroc(labels, probabilities).tolist() == [0.5, 0.5]
    assert average_precision(labels, probabilities).tolist() == [0.75, 0.25]


def test_are_undefined_without_the_class_or_without_the_rest():
    labels, probabilities = [0, 0], [[0.7, 0.3], [1.0, 0.0]]
    assert np.isnan(auroc(labels, probabilities)).all()
    np.testing.assert_array_equal(average_precision(labels, probabilities), [1, np.nan])
    roc = roc_curve(labels, probabilities, positive=1)
    assert np.isnan(roc.area)
    assert np.isnan(roc.true_positive_rate).all()
    assert roc.false_positive_rate.tolist() == [0, 0.5, 1]
    curve = precision_recall_curve(labels, probabilities, positive=1)
    assert np.isnan(curve.average_precision)
    assert np.isnan(curve.recall).all()
    assert curve.precision.tolist() == [0, 0]


def test_are_undefined_without_a_case():
    nothing = np.empty((0, 3))
    assert np.isnan(auroc([], nothing)).all()
    assert np.isnan(average_precision([], nothing)).all()
    assert roc_curve([], nothing, positive=0).thresholds.tolist() == [np.inf]
    assert precision_recall_curve([], nothing, positive=0).thresholds.size == 0


def test_a_roc_curve_starts_where_nothing_is_positive_although_a_score_is_1():
    curve = roc_curve([1, 0], [[0.0, 1.0], [0.0, 1.0]], positive=1)
    assert curve.thresholds.tolist() == [np.inf, 1]
    assert curve.true_positive_rate.tolist() == [0, 1]
    assert curve.area == 0.5


def test_zero_has_no_sign():
    ranking = rank(np.array([0.0, -0.0]), np.array([True, False]))
    assert ranking.thresholds.size == 1
    assert ranking.roc_area == 0.5


@pytest.mark.parametrize(
    ("labels", "probabilities", "positive", "field"),
    [
        ([0, 2], [[0.5, 0.5], [0.5, 0.5]], 0, "labels"),
        ([0], [[0.5, 0.5], [0.5, 0.5]], 0, "probabilities"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], 0, "probabilities"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], 2, "positive"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], -1, "positive"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], 0.5, "positive"),
    ],
)
def test_bad_arguments_are_named(labels, probabilities, positive, field):
    for curve in (roc_curve, precision_recall_curve):
        with pytest.raises(InvalidInputError) as caught:
            curve(labels, probabilities, positive=positive)
        assert caught.value.field == field
