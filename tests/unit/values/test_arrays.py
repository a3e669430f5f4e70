import numpy as np
import pytest

from lifelong_core.values.arrays import (
    as_confusion,
    as_costs,
    as_groups,
    as_labels,
    as_logits,
    as_prevalence,
    as_probabilities,
    centre_rows,
    read_labels,
    read_only,
)
from lifelong_core.values.errors import InvalidInputError


def test_logits_become_contiguous_float32():
    logits = as_logits(np.asfortranarray([[1, 2, 3], [4, 5, 6]]))
    assert logits.dtype == np.float32
    assert logits.flags.c_contiguous
    assert logits.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0],
        [],
        [[], []],
        [[1.0, 2.0], [3.0]],
        [["a", "b"]],
        [[1.0, None]],
        [[1j, 2j]],
        [[0.0, float("nan")]],
        [[0.0, float("inf")]],
        [[0.0, 1e39]],  # finite, but not in float32
    ],
)
def test_illegal_logits_are_refused_by_name(values):
    with pytest.raises(InvalidInputError) as caught:
        as_logits(values, field="window")
    assert caught.value.field == "window"


@pytest.mark.parametrize("values", [[[1.0], [-2.0], [0.5]], [1.0, -2.0, 0.5], np.float16([[1], [-2], [0.5]])])
def test_one_logit_per_sample_is_that_of_the_second_of_two_classes(values):
    assert as_logits(values).tolist() == as_logits(values, classes=2).tolist() == [[0, 1], [0, -2], [0, 0.5]]
    with pytest.raises(InvalidInputError, match=r"expected shape"):
        as_logits(values, classes=3)


def test_two_numbers_alone_may_be_one_sample_or_two():
    with pytest.raises(InvalidInputError) as caught:
        as_logits([1.0, 2.0])
    assert caught.value.hint == "Send [[z0, z1]] for one sample, [[z], [z]] for two."


def test_logits_name_the_row_that_is_not_finite():
    with pytest.raises(InvalidInputError, match="row 2"):
        as_logits([[0, 1], [1, 0], [0, np.nan], [np.inf, 0]])


def test_logits_of_another_model_are_refused():
    assert as_logits([[0, 1]], classes=2).shape == (1, 2)
    with pytest.raises(InvalidInputError, match="3 columns"):
        as_logits([[0, 1]], classes=3)


def test_labels_are_whole_numbers_in_range():
    assert as_labels([0, 2, 1.0], classes=3).dtype == np.int64
    assert as_labels([], classes=3).size == 0


@pytest.mark.parametrize("values", [[0.5], [np.nan], [-1], [3], [[0, 1]], ["a"], [np.inf], [1e300]])
def test_illegal_labels_are_refused(values):
    with pytest.raises(InvalidInputError) as caught:
        as_labels(values, classes=3)
    assert caught.value.field == "labels"


@pytest.mark.parametrize(
    ("labels", "class_names", "indices"),
    [
        ([1, 2, 3, 1], ("1", "2", "3"), [0, 1, 2, 0]),
        ([0, 1, 2], ("1", "2", "3"), [0, 1, 2]),
        ([3.0, 2.0], ("1", "2", "3"), [2, 1]),
        (["2", "3"], ("1", "2", "3"), [1, 2]),
        ([0, 2, 1], ("0", "1", "2"), [0, 2, 1]),
        ([0, 2], ("a", "b", "c"), [0, 2]),
        (["b", "0", "Läsion"], ("a", "b", "La\u0308sion"), [1, 0, 2]),
        ([0, 2], None, [0, 2]),
    ],
)
def test_labels_are_names_or_indices_by_one_rule(labels, class_names, indices):
    assert read_labels(labels, class_names).tolist() == indices


def test_numbers_that_may_be_names_or_indices_are_refused():
    with pytest.raises(InvalidInputError, match=r"1\.\.2 may be names or indices") as caught:
        read_labels([2, 1, 2], ("1", "2", "3"))
    assert caught.value.hint == "Give names as texts. Give one of 1, 2, 3."


@pytest.mark.parametrize("labels", [[0, 1, 3], ["0"], ["a"], [4], ["01"]])
def test_labels_that_name_no_class_are_refused(labels):
    with pytest.raises(InvalidInputError, match="is no class") as caught:
        read_labels(labels, ("1", "2", "3"))
    assert caught.value.field == "labels"
    assert caught.value.hint == "Give one of 1, 2, 3."


def test_prevalence_is_normalised_exactly():
    prevalence = as_prevalence([0.3333333, 0.3333333, 0.3333333])
    assert prevalence.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    "values", [[0.5, 0.6], [1.5, -0.5], [1.0], [[0.5, 0.5]], [np.nan, 1.0], [0.5, 0.49999], ["x", "y"]]
)
def test_illegal_prevalences_are_refused(values):
    with pytest.raises(InvalidInputError) as caught:
        as_prevalence(values)
    assert caught.value.field == "prevalence"


def test_prevalence_of_other_classes_is_refused():
    with pytest.raises(InvalidInputError):
        as_prevalence([0.5, 0.5], classes=3)


def test_probabilities_may_be_rounded_like_a_float32_softmax():
    rows = np.random.default_rng(0).dirichlet(np.ones(100), size=50).astype(np.float32)
    assert as_probabilities(rows).dtype == np.float64


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 0.5],
        [[1.0]],
        [[0.5, 0.6]],
        [[-0.1, 1.1]],
        [[np.nan, 1]],
        [[np.inf, -np.inf]],
        [[1e308, 1e308]],
    ],
)
def test_illegal_probabilities_are_refused(values):
    with pytest.raises(InvalidInputError) as caught:
        as_probabilities(values)
    assert caught.value.field == "probabilities"


@pytest.mark.parametrize("columns", [2, 3])
def test_costs_may_have_a_column_to_abstain(columns):
    assert as_costs(np.zeros((2, columns)), classes=2).shape == (2, columns)


@pytest.mark.parametrize("shape", [(2, 1), (2, 4), (3, 3), (2,), (2, 2, 2)])
def test_costs_of_another_shape_are_refused(shape):
    with pytest.raises(InvalidInputError) as caught:
        as_costs(np.zeros(shape), classes=2)
    assert caught.value.field == "costs"


def test_costs_must_be_finite_but_may_be_negative():
    assert as_costs([[-1, 2], [3, 0]], classes=2)[0, 0] == -1
    with pytest.raises(InvalidInputError):
        as_costs([[0, np.inf], [1, 0]], classes=2)


@pytest.mark.parametrize(
    "values", [[[1]], [[1, 2, 3, 4], [1, 2, 3, 4]], [[1, -1], [0, 1]], [[1, np.nan], [0, 1]]]
)
def test_illegal_confusion_matrices_are_refused(values):
    with pytest.raises(InvalidInputError) as caught:
        as_confusion(values)
    assert caught.value.field == "confusion"


def test_one_group_per_sample():
    assert as_groups(None, samples=2) is None
    assert as_groups(["a", "b"], samples=2).tolist() == ["a", "b"]
    assert as_groups(["4711 ", "\t4711"], samples=2).tolist() == ["4711", "4711"]
    with pytest.raises(InvalidInputError):
        as_groups(["a"], samples=2)


@pytest.mark.parametrize("keys", [np.array(["a", None], object), [{}, {}], [["a"], ["b", "c"]]])
def test_group_keys_without_an_order_are_refused(keys):
    with pytest.raises(InvalidInputError) as caught:
        as_groups(keys, samples=2)
    assert caught.value.field == "groups"


@pytest.mark.parametrize("keys", [[1, 2], [0.5, 1.5], ["a", "b"], [b"a", b"b"], [True, False]])
def test_numbers_strings_and_bytes_are_group_keys(keys):
    assert as_groups(keys, samples=2).tolist() == keys


def test_centred_rows_sum_to_zero_in_double_precision():
    rows = centre_rows(np.array([[1e4, 0, 0], [1, 2, 3]], dtype=np.float32))
    assert rows.dtype == np.float64
    assert rows.sum(axis=1) == pytest.approx(0, abs=1e-11)


def test_frozen_arrays_cannot_be_written():
    array = read_only(np.zeros(2))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
