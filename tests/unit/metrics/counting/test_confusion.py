import math

import numpy as np
import pytest
from hypothesis import given
from sklearn import metrics as sklearn_metrics

from lifelong_core.metrics import accuracy, confusion_matrix
from lifelong_core.metrics.counting.confusion import as_confusions, one_versus_rest, ratio
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.counting_cases import confusions


def test_rows_are_true_classes_and_columns_decisions():
    assert confusion_matrix([0, 0, 1, 2], [0, 1, 1, 0], classes=3).tolist() == [
        [1, 1, 0],
        [0, 1, 0],
        [1, 0, 0],
    ]


def test_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    labels, decisions = rng.integers(5, size=(2, 300))
    found = confusion_matrix(labels, decisions, classes=5)
    assert found.tolist() == sklearn_metrics.confusion_matrix(labels, decisions, labels=range(5)).tolist()
    assert accuracy(found) == pytest.approx(sklearn_metrics.accuracy_score(labels, decisions))


def test_abstaining_has_a_column_and_counts_as_wrong():
    found = confusion_matrix([0, 1, 1], [2, 1, 2], classes=2, decisions_count=3)
    assert found.tolist() == [[0, 0, 1], [0, 1, 1]]
    assert accuracy(found) == pytest.approx(1 / 3)


def test_no_sample_gives_an_empty_matrix_and_no_accuracy():
    found = confusion_matrix([], [], classes=2)
    assert found.tolist() == [[0, 0], [0, 0]]
    assert math.isnan(accuracy(found))


@pytest.mark.parametrize(
    ("labels", "decisions", "field"),
    [
        ([0, 2], [0, 1], "labels"),
        ([0, 1], [0, 2], "decisions"),
        ([0, 1], [0], "decisions"),
        ([0.5], [0], "labels"),
    ],
)
def test_bad_arguments_are_named(labels, decisions, field):
    with pytest.raises(InvalidInputError) as caught:
        confusion_matrix(labels, decisions, classes=2)
    assert caught.value.field == field


@given(confusions())
def test_each_class_against_the_rest(confusion):
    """A direct transcription of thesis Def. 2.13."""
    counts = one_versus_rest(confusion)
    classes, decisions = confusion.shape
    for k in range(classes):
        others = [i for i in range(classes) if i != k]
        elsewhere = [j for j in range(decisions) if j != k]
        assert counts.true_positives[k] == confusion[k, k]
        assert counts.false_negatives[k] == confusion[k, elsewhere].sum()
        assert counts.false_positives[k] == confusion[others, k].sum()
        assert counts.true_negatives[k] == confusion[np.ix_(others, elsewhere)].sum()
        assert counts.positives[k] == confusion[k].sum()
        assert counts.negatives[k] == confusion[others].sum()
        assert counts.decided_positive[k] == confusion[:, k].sum()
        assert counts.decided_negative[k] == confusion[:, elsewhere].sum()


def test_what_no_weight_adds_to_stays_zero():
    """0.1 + 0.2 + 0.3 - 0.3 - 0.2 - 0.1 is not 0 in floating point."""
    counts = one_versus_rest([[0.1, 0.2, 0.3], [0.1, 0.0, 0.0], [0.7, 0.0, 0.0]])
    assert counts.true_negatives[0] == 0
    assert one_versus_rest([[0.1, 0.7], [0.3, 0.0]]).true_negatives[0] == 0


def test_scaling_changes_no_digit():
    confusion = np.array([[3.0, 1e-3], [0.7, 1234.0]])
    scaled = as_confusions(confusion)
    assert (scaled * 2048).tolist() == confusion.tolist()
    assert as_confusions(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert as_confusions(np.array([confusion, np.eye(2)])).max(axis=(1, 2)).tolist() == [1234 / 2048, 0.5]
    assert as_confusions(np.zeros((0, 2, 3))).shape == (0, 2, 3)
    assert as_confusions([[[1, 0], [0, 1]]]).tolist() == [[[0.5, 0], [0, 0.5]]]


def test_quotients_of_zero():
    found = ratio(np.array([0.0, 1.0, -1.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 2.0, -0.0]))
    assert math.isnan(found[0])
    assert found[1:].tolist() == [math.inf, -math.inf, 0, math.inf]
