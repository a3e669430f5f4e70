from datetime import UTC, datetime, timedelta

import pytest

from lifelong_monitor.cycle.occasion import due_before, interval_of
from tests.unit.monitor.population import HOUR


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


@pytest.mark.parametrize("seconds", [1e-9, 0.5, 3600, 86400 * 3])
def test_every_legal_interval_is_positive(seconds: float) -> None:
    assert interval_of(seconds) > timedelta(0)
