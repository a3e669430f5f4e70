import math

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import accuracy, confusion_matrix


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


def test_accuracy_refuses_what_is_no_confusion_matrix():
    with pytest.raises(InvalidInputError):
        accuracy([[1, 2, 3, 4], [1, 2, 3, 4]])
