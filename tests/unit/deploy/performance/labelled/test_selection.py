import numpy as np
import pytest

from lifelong_core.deploy.performance.labelled.selection import selection_test
from lifelong_core.values.errors import InvalidInputError


def logits(rng, size):
    return rng.normal(size=(size, 4)) + 3 * np.eye(4)[rng.choice(4, size=size, p=[0.5, 0.3, 0.15, 0.05])]


@pytest.mark.parametrize(("labelled", "unlabelled"), [(30, 400), (300, 300), (400, 40)])
@pytest.mark.parametrize("grouped", [False, True])
def test_equal_distributions_are_rejected_at_the_level(labelled, unlabelled, grouped):
    rng = np.random.default_rng(labelled)
    rejected = 0
    for _ in range(200):
        parts = logits(rng, labelled), logits(rng, unlabelled)
        groups: dict[str, object] = {}
        if grouped:
            parts = tuple(part.repeat(3, axis=0) for part in parts)
            groups = {
                "labelled_groups": np.arange(labelled).repeat(3),
                "unlabelled_groups": np.arange(labelled, labelled + unlabelled).repeat(3),
            }
        rejected += selection_test(*parts, **groups, level=0.05).rejected
    assert rejected / 200 <= 0.1


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[np.sort(rows, axis=1)[:, -1] - np.sort(rows, axis=1)[:, -2] < 2],
        lambda rows: 0.7 * rows,
    ],
    ids=["uncertain ones", "scaled"],
)
def test_a_selection_is_found(change):
    rng = np.random.default_rng(1)
    found = selection_test(change(logits(rng, 400))[:150], logits(rng, 1000))
    assert found.rejected
    assert "differ from" in found.text


def test_weights_undo_a_known_selection():
    rng = np.random.default_rng(2)
    rows = logits(rng, 6000)
    ordered = np.sort(rows, axis=1)
    chances = np.where(ordered[:, -1] - ordered[:, -2] < 2, 0.3, 0.05)
    chosen = rng.random(6000) < chances
    assert selection_test(rows[chosen], rows[~chosen]).rejected
    # all rows against the weighted ones: the population
    assert not selection_test(rows[chosen], rows, weights=1 / chances[chosen]).rejected


def test_one_sample_and_constant_logits_are_no_error():
    assert not selection_test([[1, 0]], [[1, 0], [1, 0]]).rejected
    assert not selection_test(np.ones((5, 3)), np.ones((9, 3))).rejected


def test_errors_name_the_field():
    for change, field in [
        ({"labelled": np.zeros((0, 2))}, "labelled"),
        ({"unlabelled": np.zeros((0, 2))}, "unlabelled"),
        ({"unlabelled": np.zeros((4, 3))}, "unlabelled"),
        ({"weights": [1, 0, 1]}, "weights"),
        ({"labelled_groups": [1, 2, 3]}, "unlabelled_groups"),
    ]:
        arguments = {"labelled": np.zeros((3, 2)), "unlabelled": np.zeros((4, 2)), **change}
        with pytest.raises(InvalidInputError) as caught:
            selection_test(**arguments)
        assert caught.value.field == field
