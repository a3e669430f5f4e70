from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from lifelong_core.metrics.scores import samples as blockwise
from lifelong_core.metrics.scores import samples as labelled_probabilities
from lifelong_core.metrics.scores.samples import equal_prediction_blocks, equal_predictions
from tests.unit.metrics.labelled_cases import few_examples, labelled


def by_definition(labels, probabilities):
    """Weight and class shares of each distinct row."""
    rows = [tuple((row + 0.0).tolist()) for row in probabilities]
    sizes, pairs = Counter(rows), Counter(zip(rows, labels.tolist(), strict=True))
    classes = range(probabilities.shape[1])
    return {row: (size / len(rows), [pairs[row, k] / size for k in classes]) for row, size in sizes.items()}


def found_in(groups):
    keys = [tuple(row.tolist()) for row in groups.probabilities]
    assert len(set(keys)) == len(keys)
    return dict(
        zip(keys, zip(groups.weights.tolist(), groups.class_shares.tolist(), strict=True), strict=True)
    )


@few_examples
@given(labelled())
def test_groups_equal_rows(cases):
    assert found_in(equal_predictions(*cases)) == by_definition(*cases)


@few_examples
@given(labelled(max_size=40))
def test_parts_are_the_whole(cases):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blockwise, "BLOCK", 3 * cases[1].shape[1])
        parts = list(equal_prediction_blocks(*cases))
    together = {}
    for part in parts:
        assert part.weights.size <= 3
        together |= found_in(part)
    assert together == found_in(equal_predictions(*cases))


def test_no_case_is_one_empty_part():
    (part,) = equal_prediction_blocks(np.zeros(0, dtype=np.int64), np.zeros((0, 2)))
    assert part.weights.size == 0


@few_examples
@given(labelled())
def test_equal_hashes_of_different_rows_do_no_harm(cases):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labelled_probabilities, "_hashes", lambda rows: np.zeros(len(rows), dtype=np.uint64))
        found = found_in(equal_predictions(*cases))
    assert found == by_definition(*cases)


def test_zeros_of_both_signs_are_equal():
    groups = equal_predictions(np.array([0, 1]), np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert groups.class_shares.tolist() == [[0.5, 0.5]]
