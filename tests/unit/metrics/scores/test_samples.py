import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from lifelong_core.metrics import corrected_probabilities
from lifelong_core.metrics.scores import samples
from lifelong_core.metrics.scores.samples import (
    as_values,
    blocks,
    columns_of,
    equal_prediction_blocks,
    equal_predictions,
)
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.labelled_cases import labelled


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


@given(labelled())
def test_groups_equal_rows(cases):
    assert found_in(equal_predictions(*cases)) == by_definition(*cases)


@given(labelled(max_size=40))
def test_parts_are_the_whole(cases):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "BLOCK", 3 * cases[1].shape[1])
        parts = list(equal_prediction_blocks(*cases))
    together = {}
    for part in parts:
        assert part.weights.size <= 3
        together |= found_in(part)
    assert together == found_in(equal_predictions(*cases))


def test_no_case_is_one_empty_part():
    (part,) = equal_prediction_blocks(np.zeros(0, dtype=np.int64), np.zeros((0, 2)))
    assert part.weights.size == 0


@given(labelled())
def test_equal_hashes_of_different_rows_do_no_harm(cases):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "_hashes", lambda rows: np.zeros(len(rows), dtype=np.uint64))
        found = found_in(equal_predictions(*cases))
    assert found == by_definition(*cases)


def test_zeros_of_both_signs_are_equal():
    groups = equal_predictions(np.array([0, 1]), np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert groups.class_shares.tolist() == [[0.5, 0.5]]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 100))
def test_blocks_cover_each_row_once_within_the_limit(rows, columns, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "BLOCK", limit)
        parts = list(blocks(rows, columns))
    assert [row for part in parts for row in range(rows)[part]] == list(range(rows))
    assert all(part.stop - part.start == 1 or (part.stop - part.start) * columns <= limit for part in parts)


@pytest.mark.parametrize("classes", [1, 8, 9, 20])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_are_contiguous(classes, order):
    values = np.asarray(np.random.default_rng(0).random((5, classes)), order=order)
    columns = list(columns_of(values))
    assert np.array_equal(np.stack(columns, axis=1), values)
    assert all(column.flags.c_contiguous for column in columns)


def test_numbers_become_an_array():
    assert as_values([True, False], field="labels").tolist() == [1, 0]
    assert (
        as_values(np.array([1, 2], dtype=np.float32), field="scores", samples=2, low=1, high=2).dtype
        == np.float64
    )
    assert as_values([], field="scores").size == 0
    assert np.isnan(as_values([math.nan, 1], field="values", finite=False)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ("abc", "one number per sample"),
        ([[1, 2], [3]], "one number per sample"),
        ([1, None, {}], "one number per sample"),
        (3, "shape"),
        ([1, 2, 3], "shape"),
        ([[1, 2]], "shape"),
        ([0, 1.5], "got 1.5 at index 1"),
        ([-0.5, 1], "got -0.5 at index 0"),
        ([0, math.nan], "got nan at index 1"),
        ([math.inf, 1], "got inf at index 0"),
    ],
)
def test_anything_else_is_refused_and_named(values, wrong):
    with pytest.raises(InvalidInputError, match=wrong) as caught:
        as_values(values, field="scores", samples=2, low=0, high=1)
    assert caught.value.field == "scores"


def posterior(features, prevalence):
    """P(class | feature) of normally distributed features by Bayes' theorem."""
    joint = np.stack([share * norm.pdf(features, loc=k) for k, share in enumerate(prevalence)], axis=1)
    return joint / joint.sum(axis=1, keepdims=True)


def test_they_are_the_posteriors_of_the_other_population():
    features = np.linspace(-4, 6, 50)
    given, wanted = [0.2, 0.3, 0.5], [0.9, 0.09, 0.01]
    found = corrected_probabilities(posterior(features, given), given=given, wanted=wanted)
    np.testing.assert_allclose(found, posterior(features, wanted), rtol=1e-9)


def test_a_class_that_is_not_wanted_gets_none():
    found = corrected_probabilities([[0.2, 0.8], [0.0, 1.0]], given=[0.5, 0.5], wanted=[1, 0])
    assert found.tolist() == [[1, 0], [1, 0]]


def test_a_class_without_a_share_cannot_be_corrected_to():
    with pytest.raises(InvalidInputError, match="without class 1") as error:
        corrected_probabilities([[0.2, 0.8]], given=[1, 0], wanted=[0.5, 0.5])
    assert error.value.field == "given"
