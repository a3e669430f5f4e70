"""Scales of axes."""

from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.charts.scales import Scale, pad_range, path_through, round_numbers, time_ticks

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(low=NUMBERS, width=st.floats(1e-6, 1e6), most=st.integers(3, 8))
def test_ticks_are_round_few_and_within(low: float, width: float, most: int) -> None:
    high = low + width
    ticks = round_numbers(low, high, most=most)
    assert 1 <= len(ticks) <= most + 1
    slack = 1e-6 * max(abs(low), abs(high), width)
    assert all(low - slack <= value <= high + slack for value, _ in ticks)


@given(values=st.lists(NUMBERS, max_size=5))
def test_there_is_air_around_values(values: list[float]) -> None:
    low, high = pad_range(values)
    assert low < high
    assert all(low <= value <= high for value in values)


def test_a_scale_puts_values_between_its_ends() -> None:
    scale = Scale((0, 2), (10, 110))
    assert [scale(value) for value in (0, 0.5, 2, 1e9, -1e9)] == [10, 35, 110, 210, -90]


def test_a_path_keeps_its_corners() -> None:
    assert path_through([]) == ""
    assert path_through([(0, 0), (0, 5), (5, 5), (9, 5), (5, 5)]) == "M0 0L0 5L9 5L5 5"


@given(since=st.integers(0, 2 * 10**9), seconds=st.integers(600, 10**8), most=st.integers(3, 8))
def test_ticks_of_time_are_few_and_within(since: int, seconds: int, most: int) -> None:
    ticks = time_ticks(Scale((since, since + seconds), (0, 100)), most=most)
    assert len(ticks) <= most + 1
    assert all(0 <= tick.at <= 100 for tick in ticks)
