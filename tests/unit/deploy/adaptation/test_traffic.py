"""What counts as unusual traffic, just below and just above each limit."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from lifelong_core.deploy.adaptation.traffic import Traffic, describe_traffic
from lifelong_core.values.errors import InvalidInputError

START = datetime(2026, 1, 1, tzinfo=UTC)
SINCE = START + timedelta(hours=40)


def hours(*counts: int) -> dict[datetime, int]:
    """Predictions of each hour from START on."""
    return {START + timedelta(hours=hour): count for hour, count in enumerate(counts)}


def described(window: dict[str, int], before: dict[str, int], *counts: int) -> Traffic:
    found = describe_traffic(window, before, hours(*counts), since=SINCE)
    assert found is not None
    return found


@pytest.mark.parametrize(("share", "expected"), [(24, False), (25, True)])
def test_another_sender_from_a_quarter_of_the_window_on(share: int, expected: bool) -> None:
    found = described({"a": 100 - share, "b": share}, {"a": 300})
    assert (found.sender, found.is_other_sender) == ("b", expected)


@pytest.mark.parametrize(("before", "expected"), [(9, True), (10, False)])
def test_a_sender_is_usual_from_a_tenth_on(before: int, expected: bool) -> None:
    assert described({"b": 600}, {"a": 1000 - 10 * before, "b": 10 * before}).is_other_sender is expected


@pytest.mark.parametrize(("before", "expected"), [(199, False), (200, True)])
def test_of_few_predictions_nobody_says_who_usually_sends(before: int, expected: bool) -> None:
    found = described({"b": 600}, {"a": before})
    assert (found.is_other_sender, found.usual_share is None) == (expected, not expected)


@pytest.mark.parametrize(("busiest", "expected"), [(50, False), (51, True)])
def test_a_burst_is_more_than_five_times_a_busy_hour(busiest: int, expected: bool) -> None:
    found = described({"a": 60}, {}, *[10] * 41, busiest)
    assert (found.is_burst, found.burst_ratio) == (expected, busiest / 10)


@pytest.mark.parametrize(("others", "expected"), [(30, True), (31, False)])
def test_a_burst_counts_from_a_quarter_of_the_window_on(others: int, expected: bool) -> None:
    assert described({"a": 1}, {}, *[10] * (40 + others), 100).is_burst is expected


@pytest.mark.parametrize(("known", "expected"), [(11, False), (12, True)])
def test_of_few_hours_nobody_says_what_is_usual(known: int, expected: bool) -> None:
    counts = [0] * (42 - known) + [10] * (known - 1)
    assert described({"a": 1}, {}, *counts, 900).is_burst is expected


def test_quiet_nights_are_no_reason_to_call_a_day_a_burst() -> None:
    """Ten working hours with 200 predictions each, nights with two."""
    day = [2] * 14 + [200] * 10
    found = described({"a": 1}, {}, *day * 3)
    assert (found.is_burst, found.burst_share) == (False, 0.0)


@pytest.mark.parametrize(("nights", "expected"), [(2, True), (3, False)])
def test_a_batch_on_three_nights_is_no_burst(nights: int, expected: bool) -> None:
    days = [20] * 24 * (5 - nights) + ([20] * 22 + [400, 20]) * nights
    assert described({"a": 1}, {}, *days).is_burst is expected


def test_a_burst_before_the_window_is_none_of_it() -> None:
    assert not described({"a": 1}, {}, *[10] * 20, 900, *[10] * 30).is_burst


def test_an_empty_window_has_no_traffic() -> None:
    assert describe_traffic({}, {"a": 9}, {}, since=SINCE) is None


def test_traffic_survives_json() -> None:
    found = described({"a": 2, "b": 1}, {"a": 300}, *[10] * 45)
    assert Traffic.from_document(json.loads(json.dumps(found.to_document()))) == found
    for changes in (
        {"sender": 1},
        {"sender_share": 2},
        {"burst_ratio": -1},
        {"usual_share": "x"},
        {"more": 1},
    ):
        with pytest.raises(InvalidInputError):
            Traffic.from_document({**found.to_document(), **changes})
