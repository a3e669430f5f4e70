import re

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, fit_head
from lifelong_core.values.arrays import as_logits
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.mistaken_probabilities import (
    expect_logits,
    look_like_probabilities,
    may_sum_to_one_by_chance,
)


def test_outputs_of_a_sigmoid_are_no_logits_but_a_few_single_logits_may_lie_in_the_same_range():
    outputs = np.random.default_rng(0).uniform(size=(100, 1))
    assert look_like_probabilities(as_logits(outputs))
    assert not look_like_probabilities(as_logits(outputs[:10]))
    assert not look_like_probabilities(as_logits(8 * outputs - 4))


@pytest.mark.parametrize("step", [1, 1 / 16, 0.1, 1 / 21, 1e-3])
def test_rows_on_a_grid_may_sum_to_one_by_chance(step):
    units = int(1 / step)
    rows = np.array([[k * step, 1 - k * step] for k in range(0, units + 1, max(1, units // 7))])
    assert may_sum_to_one_by_chance(as_logits(rows))


def test_a_softmax_in_full_precision_does_not_sum_to_one_by_chance():
    shares = np.random.default_rng(0).dirichlet([1, 1], size=1000)
    assert sum(may_sum_to_one_by_chance(as_logits([row])) for row in shares) < 30


def test_random_logits_are_never_taken_for_probabilities():
    generator = np.random.default_rng(0)
    for scale in (0.3, 1.0, 5.0):
        rows = as_logits(generator.normal(0, scale, size=(200_000, 2)))
        assert sum(look_like_probabilities(rows[k : k + 1]) for k in range(0, len(rows), 10)) == 0
        assert not any(look_like_probabilities(rows[k : k + 5]) for k in range(0, len(rows), 5))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_a_softmax_is_recognised_in_any_precision(dtype, classes):
    logits = np.random.default_rng(0).normal(0, 3, size=(20, classes)).astype(dtype)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(dtype)
    assert look_like_probabilities(as_logits(shares))
    assert not look_like_probabilities(as_logits(np.log(np.maximum(shares, 1e-7))))
    if dtype != np.float16:
        assert all(look_like_probabilities(as_logits(shares[k : k + 1])) for k in range(20))
    with pytest.raises(InvalidInputError, match="got probabilities"):
        expect_logits(as_logits(shares))


@pytest.mark.parametrize("places", [0, 1, 3, None])
@pytest.mark.parametrize("unit", [1, 100, 255, 500])
def test_probabilities_in_any_unit_and_rounding_are_recognised(unit, places):
    rounded_to = places + 2 if places is not None and unit == 1 else places
    for classes in (2, 3, 20):
        shares = np.random.default_rng(0).dirichlet(np.full(classes, 0.5), size=30) * unit
        rows = as_logits(shares if rounded_to is None else shares.round(rounded_to))
        assert look_like_probabilities(rows), classes
        with pytest.raises(InvalidInputError, match="got probabilities"):
            expect_logits(rows)
        if unit == 100 and places is None:
            assert all(look_like_probabilities(rows[k : k + 1]) for k in range(len(rows))), classes


@pytest.mark.parametrize("unit", [1, 10, 100])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_hint_makes_logits_of_what_looks_like_probabilities(unit, columns):
    rows = np.random.default_rng(0).dirichlet(np.ones(max(columns, 2)), size=60) * unit
    given = as_logits(rows if columns > 1 else rows[:, 0] / unit)
    with pytest.raises(InvalidInputError) as refused:
        expect_logits(given)
    offset = re.search("subtract ([0-9]+) from all", refused.value.hint).group(1)
    expect_logits(as_logits(given - float(offset) if columns > 1 else given[:, 1] - float(offset)))
    assert ("sums to" in refused.value.message) is (columns > 1)
    labels = np.arange(60) % given.shape[1]
    heads = [
        fit_head(LabeledLogits(z, labels), 1 - np.eye(z.shape[1])) for z in (given, given - float(offset))
    ]
    first, second = (
        head.apply(z).probabilities for head, z in zip(heads, (given, given - float(offset)), strict=True)
    )
    assert np.allclose(first, second, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_that_are_not_negative_are_logits(classes):
    rows = as_logits(np.random.default_rng(0).integers(0, 9, size=(3000, classes)))
    for size in (1, 3, 20):
        assert not any(look_like_probabilities(rows[k : k + size] + 1) for k in range(0, len(rows), size))
    assert not look_like_probabilities(np.repeat(rows[:1] + 1, 50, axis=0))
    assert not look_like_probabilities(np.maximum(np.random.default_rng(0).normal(0, 3, (50, classes)), 0))
