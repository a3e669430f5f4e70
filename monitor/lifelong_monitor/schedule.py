"""When a tick is due: at UTC multiples of the interval, so that restarts and several monitors agree on it."""

import math
from datetime import datetime, timedelta

from apscheduler.triggers.base import BaseTrigger

from lifelong_core.store.identifiers import EPOCH


def due_before(now: datetime, interval: timedelta) -> datetime:
    """The latest multiple of `interval` since 1970 (UTC) that is not after `now`.

    Examples:
        >>> due_before(datetime(2025, 1, 1, 10, 59, tzinfo=UTC), timedelta(hours=1)).isoformat()
        '2025-01-01T10:00:00+00:00'
    """
    return EPOCH + (now - EPOCH) // interval * interval


class AlignedTrigger(BaseTrigger):
    """Fires at once, and then at every multiple of the interval; multiples that were missed are not made up for."""

    def __init__(self, interval: timedelta) -> None:
        self._interval = interval

    def __repr__(self) -> str:
        """As the scheduler names it in the log."""
        return f"every {self._interval.total_seconds():g} s since 1970 (UTC)"

    def get_next_fire_time(  # pyright: ignore[reportIncompatibleMethodOverride] - the base has no types
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime:
        """Now if it never fired, else the first multiple after now and after the last one."""
        if previous_fire_time is None:
            return now
        if previous_fire_time - now > self._interval:
            # The clock was ahead and has been set back: waiting for it would mean to stop watching.
            return due_before(now, self._interval) + self._interval
        return due_before(max(now, previous_fire_time), self._interval) + self._interval


def interval_of(seconds: float) -> timedelta:
    """The interval as a time difference, at least a microsecond."""
    return timedelta(microseconds=max(1, math.floor(seconds * 1_000_000)))
