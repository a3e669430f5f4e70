"""When cycles are due: by the clock, early, or on request.

By the clock a cycle is due at UTC multiples of the interval: so restarts and several monitors agree on the time. Where
many predictions are new, it is due early, at the present second: of several monitors, one can record a cycle of that
second.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.store.log.identifiers import EPOCH

_EARLY_RESOLUTION = timedelta(seconds=1)
_SMALLEST = timedelta(microseconds=1)


def due_before(now: datetime, interval: timedelta) -> datetime:
    """The latest multiple of `interval` since 1970 (UTC) that is not after `now`.

    Examples:
        >>> due_before(EPOCH.replace(hour=10, minute=59), timedelta(hours=1)).isoformat()
        '1970-01-01T10:00:00+00:00'
    """
    return EPOCH + (now - EPOCH) // interval * interval


@dataclass(frozen=True)
class CycleRequest:
    """An operator's request for a cycle."""

    cycle_id: UUID
    """id of the cycle, so that the same request never records two"""
    actor: str
    """in the audit log"""


@dataclass(frozen=True)
class DueCycle:
    """Why and when a cycle is due."""

    due_at: datetime
    interval: timedelta
    """between two cycles by the clock"""
    spacing: timedelta = _SMALLEST
    """shortest time to the cycle before"""
    new_samples: int = 1
    """fewest new predictions"""
    is_early: bool = False
    """whether new predictions make the cycle due, not the clock"""
    request: CycleRequest | None = None
    """makes the cycle due, whichever cycles have run; None: the clock or new predictions make it due"""

    @classmethod
    def by_the_clock(cls, settings: Settings, due_at: datetime) -> "DueCycle":
        """The cycle that is due at a multiple of the interval, if anything is new."""
        return cls(due_at, interval_of(settings.cycle_interval_seconds))

    @classmethod
    def early(cls, settings: Settings, environment: str, now: datetime) -> "DueCycle | None":
        """The cycle that many new predictions make due at once; None: the settings want none."""
        new_samples = settings.new_samples_for(environment)
        if new_samples is None:
            return None
        interval, spacing = _interval_and_spacing(settings)
        due_at = max(due_before(now, min(spacing, _EARLY_RESOLUTION)), due_before(now, interval))
        return cls(due_at, interval, spacing, new_samples, is_early=True)

    @classmethod
    def on_request(cls, settings: Settings, request: CycleRequest, now: datetime) -> "DueCycle":
        """The cycle that an operator asks for: due now, at no time of another, whether predictions are new or not."""
        interval, spacing = _interval_and_spacing(settings)
        grids = interval, min(spacing, _EARLY_RESOLUTION)
        due_at = now + _SMALLEST if any(due_before(now, grid) == now for grid in grids) else now
        return cls(due_at, interval, new_samples=0, request=request)

    def has_run(self, last_due_at: datetime, now: datetime) -> bool:
        """Whether the last cycle replaces this one: it was due at the same time or later, or too short a time before.

        A last cycle more than one interval ahead of the present time comes from a clock that was wrong, and does not
        count. The present time decides, not `due_at`: this process may have been held up for several intervals while
        another monitor ran their cycles.

        Args:
            last_due_at: of the last cycle.
            now: the present time, read after the last cycle.
        """
        if self.request is not None:
            return False
        return self.due_at - self.spacing < last_due_at <= max(self.due_at, now) + self.interval


def interval_of(seconds: float) -> timedelta:
    """The interval as a time difference, at least a microsecond."""
    return timedelta(microseconds=max(1, math.floor(seconds * 1_000_000)))


def _interval_and_spacing(settings: Settings) -> tuple[timedelta, timedelta]:
    return interval_of(settings.cycle_interval_seconds), interval_of(settings.cycle_spacing_seconds)
