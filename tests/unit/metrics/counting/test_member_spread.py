import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lifelong_core.metrics.counting.uncertainty_aware import member_spread
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.counting_cases import few_examples


@few_examples
@given(arrays(float, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.floats(0, 1)))
def test_it_is_the_mean_of_squares_less_the_squared_mean(drawn):
    """Kendall and Gal (2017), eq. 9, without the noise of the data."""
    variance = (drawn**2).mean(axis=0) - drawn.mean(axis=0) ** 2
    found = member_spread(drawn)
    np.testing.assert_allclose(found**2, variance, atol=1e-12)
    assert found.max() <= 0.5


@pytest.mark.parametrize(
    "members",
    [
        [[0.5]],
        [0.5, 0.5],
        [[0.5], [0.5, 0.5]],
        [[0.5], [1.1]],
        [[0.5], [np.nan]],
        [[0.5]] * 101,
        [["a"], ["b"]],
    ],
)
def test_what_are_no_members_is_refused(members):
    with pytest.raises(InvalidInputError) as refused:
        member_spread(members)
    assert refused.value.field == "members"


def test_as_many_members_as_allowed():
    assert member_spread([[0.0], [1.0]] * 50).tolist() == [0.5]
