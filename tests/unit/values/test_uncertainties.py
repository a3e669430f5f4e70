import math

import numpy as np
import pytest

from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.uncertainties import LARGEST_UNCERTAINTY, as_uncertainties, check_members


@pytest.mark.parametrize("kind", LARGEST_UNCERTAINTY)
def test_the_largest_uncertainty_is_that_of_a_coin(kind):
    largest = LARGEST_UNCERTAINTY[kind]
    assert as_uncertainties([0, largest], samples=2, kind=kind).tolist() == [0, largest]
    with pytest.raises(InvalidInputError, match="at index 1") as refused:
        as_uncertainties([0, largest * 1.001], samples=2, kind=kind)
    assert refused.value.field == "uncertainties"
    assert ("state its kind" in (refused.value.hint or "")) == (kind != "other")


def test_the_limits_are_those_of_two_equal_outcomes():
    """Of 0 and 1 with probability 1/2 each."""
    assert LARGEST_UNCERTAINTY["standard_deviation"] == np.std([0, 1])
    assert LARGEST_UNCERTAINTY["variance"] == np.var([0, 1])
    assert LARGEST_UNCERTAINTY["entropy"] == pytest.approx(-2 * 0.5 * math.log(0.5))


def test_rounding_of_float32_is_no_error():
    assert as_uncertainties(np.array([math.log(2)], np.float32), samples=1, kind="entropy").size == 1


@pytest.mark.parametrize(
    "values", [[-0.1, 0], [math.nan, 0], [math.inf, 0], [0], [[0, 0]], ["0.1", "0.2"], [[0], [0, 1]], [1j, 0]]
)
def test_other_values_are_refused(values):
    with pytest.raises(InvalidInputError) as refused:
        as_uncertainties(values, samples=2)
    assert refused.value.field == "uncertainties"


@pytest.mark.parametrize(("members", "is_legal"), [(1, False), (2, True), (100, True), (101, False)])
def test_the_number_of_members(members, is_legal):
    if is_legal:
        check_members(members)
    else:
        with pytest.raises(InvalidInputError, match=f"got {members}"):
            check_members(members)
