from datetime import UTC, datetime, timedelta

import pytest

from lifelong_monitor.schedule.trigger import AlignedTrigger, due_before, interval_of

HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2025-03-01T10:00:00", "2025-03-01T10:00:00"),
        ("2025-03-01T10:59:59.999999", "2025-03-01T10:00:00"),
        ("2025-03-01T00:00:00.000001", "2025-03-01T00:00:00"),
    ],
)
def test_what_is_due_is_the_last_full_hour(now: str, due: str) -> None:
    assert due_before(at(now), HOUR) == at(due)


def test_two_monitors_that_start_at_different_times_agree_on_what_is_due() -> None:
    interval = interval_of(7.3)
    base = due_before(at("2025-03-01T10:00:00"), interval)
    assert {due_before(base + timedelta(seconds=offset), interval) for offset in (0, 0.1, 3, 7.299)} == {base}
    assert due_before(base + timedelta(seconds=7.3), interval) == base + interval


def test_a_time_zone_changes_nothing() -> None:
    local = datetime(2025, 3, 1, 11, 30, tzinfo=UTC).astimezone(tz=None)
    assert due_before(local, HOUR) == at("2025-03-01T11:00:00")


def test_the_first_tick_comes_at_once_and_the_next_at_the_full_hour() -> None:
    trigger = AlignedTrigger(HOUR)
    started = at("2025-03-01T10:20:00")
    assert trigger.get_next_fire_time(None, started) == started
    assert trigger.get_next_fire_time(started, started) == at("2025-03-01T11:00:00")


def test_a_tick_on_the_hour_is_followed_by_the_next_hour_not_by_itself() -> None:
    hour = at("2025-03-01T11:00:00")
    assert AlignedTrigger(HOUR).get_next_fire_time(hour, hour) == hour + HOUR


def test_missed_ticks_are_not_made_up_for() -> None:
    last, now = at("2025-03-01T11:00:00"), at("2025-03-01T17:10:00")
    assert AlignedTrigger(HOUR).get_next_fire_time(last, now) == at("2025-03-01T18:00:00")


def test_the_log_names_the_schedule_in_words() -> None:
    assert str(AlignedTrigger(HOUR)) == repr(AlignedTrigger(HOUR)) == "every 3600 s since 1970 (UTC)"


@pytest.mark.parametrize("seconds", [1e-9, 0.5, 3600, 86400 * 3])
def test_every_legal_interval_is_positive(seconds: float) -> None:
    assert interval_of(seconds) > timedelta(0)
