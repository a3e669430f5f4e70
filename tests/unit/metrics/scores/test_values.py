import math

import numpy as np
import pytest

from lifelong_core.metrics.scores.samples import as_values
from lifelong_core.values.errors import InvalidInputError


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
