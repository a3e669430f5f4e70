"""Words and numbers for users are the same on all surfaces, and precise enough."""

from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from lifelong_core.design.method.schema import Confidence, Display
from lifelong_core.design.recommendation.document import DecidedBy
from lifelong_core.design.recommendation.wording import (
    CONFIDENCE_WORDS,
    DECIDED_BY,
    DISPLAY_NAMES,
    format_distinct,
)

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


@given(first=NUMBERS, second=NUMBERS)
@example(first=0.95, second=0.9499999999999999)
@example(first=0.1 + 0.2, second=0.3)
@example(first=0.0, second=-1e-300)
def test_numbers_are_written_so_that_their_order_is_seen(first: float, second: float) -> None:
    one, other = format_distinct(first, second)
    assert (float(one) < float(other), float(one) > float(other)) == (first < second, first > second)


def test_there_is_a_word_for_everything() -> None:
    assert set(CONFIDENCE_WORDS) == set(get_args(Confidence))
    assert set(DECIDED_BY) == set(get_args(DecidedBy))
    assert set(DISPLAY_NAMES) == set(get_args(Display))
