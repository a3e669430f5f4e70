"""Traffic of a window: whether the rate and the senders of its predictions are usual.

A sender is trusted if its token is bound to the environment, or if it is known there: enough of its predictions came on
other days than its two busiest successive ones. So a new site whose token is not bound waits for its third or fourth
day, and not for ever; a sender that sends once gains nothing by waiting.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import cast

import numpy as np

from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.values.arrays import as_parameter
from lifelong_core.values.errors import InvalidInputError

BUSY = 0.9
"""The rate of a busy hour is this quantile over the hours with predictions."""
BUSY_DAYS = 3
"""The lowest of the busiest hours of so many days is a busy hour, too: a batch each night is no burst."""
BURST_FACTOR = 5.0
"""An hour with more than this many times the predictions of a busy hour is a burst."""
BURST_SHARE = 0.25
"""Traffic is unusual if at least this share of the window came in bursts."""
LEAST_HOURS = 12
"""Fewest hours with predictions that show the usual rate."""
SENDER_SHARE = 0.25
"""Traffic is unusual if one sender has at least this share of the window ..."""
USUAL_SHARE = 0.1
"""... and had less than this share before."""
LEAST_BEFORE = 200
"""Fewest earlier predictions that show the usual senders."""
KNOWN_RATIO = 0.25
"""A sender is known from this many predictions on other days on, relative to those in the window."""
UNKNOWN_SHARE = 0.25
"""Traffic is unusual if senders that are neither bound nor known have at least this share of the window."""

_DAY = timedelta(days=1)
_RANGES = {
    "sender_share": 1.0,
    "usual_share": 1.0,
    "burst_share": 1.0,
    "burst_ratio": np.inf,
    "unknown_share": 1.0,
}


@dataclass(frozen=True)
class Traffic(FlatDocument):
    """Senders and rates of a window's predictions, compared with the usual ones.

    Examples:
        >>> Traffic(sender="clinic-b", sender_share=0.8, usual_share=0.0).is_other_sender
        True
        >>> Traffic(sender="clinic-a", sender_share=1.0, usual_share=1.0).is_other_sender
        False
    """

    sender: str
    """of the senders without a bound token, the one with the largest excess over its usual share; where usual shares
    are unknown, the largest. Where all tokens are bound, the largest sender"""
    sender_share: float
    """its share of the window"""
    usual_share: float | None = None
    """its share of the earlier predictions; None: they are too few, or its token is bound"""
    burst_share: float | None = None
    """share of the window that came in bursts; None: too few hours"""
    burst_ratio: float | None = None
    """predictions of the window's busiest hour, relative to a busy hour; None: too few hours"""
    unknown_share: float | None = None
    """share of the window from senders that are neither bound nor known; None: not examined"""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInputError: a value is out of range; the message names the field.
        """
        if not isinstance(cast("object", self.sender), str):
            raise InvalidInputError("expected a name.", field="sender")
        if cast("object", self.sender_share) is None:
            raise InvalidInputError("expected a number.", field="sender_share")
        for name, high in _RANGES.items():
            value = cast("float | None", getattr(self, name))
            if value is None:
                continue
            number = as_parameter(value, field=name)
            if number.ndim or not 0 <= number <= high:
                raise InvalidInputError("expected a number in its range.", field=name)
            object.__setattr__(self, name, float(number))

    @property
    def is_other_sender(self) -> bool:
        """Whether much of the window came from one sender that sent little here before."""
        return (
            self.usual_share is not None
            and self.sender_share >= SENDER_SHARE
            and self.usual_share < USUAL_SHARE
        )

    @property
    def is_unknown_sender(self) -> bool:
        """Whether much of the window came from senders that are neither bound to the environment nor known in it."""
        return self.unknown_share is not None and self.unknown_share >= UNKNOWN_SHARE

    @property
    def is_burst(self) -> bool:
        """Whether much of the window came at an unusual rate."""
        return self.burst_share is not None and self.burst_share >= BURST_SHARE


def in_other_days(days: Mapping[date, int]) -> int:
    """Predictions of a sender on other days than its two busiest successive ones.

    Args:
        days: predictions of each UTC day.

    Examples:
        >>> in_other_days({date(2026, 1, 1): 500, date(2026, 1, 2): 20, date(2026, 1, 5): 30})
        30
    """
    return sum(days.values()) - max(count + days.get(day + _DAY, 0) for day, count in days.items())


def describe_traffic(
    window: Mapping[str, int],
    before: Mapping[str, int],
    hours: Mapping[datetime, int],
    *,
    since: datetime,
    known: Mapping[str, int] | None = None,
    bound: Collection[str] = (),
) -> Traffic | None:
    """Compare the traffic of a window with the usual traffic.

    Args:
        window: predictions of the window by sender.
        before: predictions by sender of the days before the last two, some of which may be in the window, too.
        hours: predictions of each hour by its begin, of the window and of the weeks before it.
        since: begin of the hour of the window's first prediction.
        known: predictions `in_other_days` of each sender of the window; None: `before`.
        bound: senders whose token is bound to this environment.

    Returns:
        None if the window is empty.

    Examples:
        >>> from datetime import timedelta
        >>> start = datetime(2026, 1, 1)
        >>> hours = {start + timedelta(hours=hour): 10 for hour in range(50)} | {start + timedelta(hours=50): 900}
        >>> found = describe_traffic({"a": 100, "b": 900}, {"a": 400}, hours, since=start + timedelta(hours=40))
        >>> found.sender, found.sender_share, found.usual_share, found.burst_share, found.burst_ratio
        ('b', 0.9, 0.0, 0.9, 90.0)
        >>> found.unknown_share
        0.9
    """
    total = sum(window.values())
    if not total:
        return None
    earlier = sum(before.values())
    usual = {name: count / earlier for name, count in before.items()} if earlier >= LEAST_BEFORE else {}
    others = [name for name in window if name not in bound]
    sender = max(others or window, key=lambda name: (window[name] / total - usual.get(name, 0), name))
    known = before if known is None else known
    unknown = sum(window[name] for name in others if known.get(name, 0) < KNOWN_RATIO * window[name])
    share, ratio = _bursts({hour: count for hour, count in hours.items() if count}, since)
    return Traffic(
        sender=sender,
        sender_share=window[sender] / total,
        usual_share=usual.get(sender, 0.0) if usual and others else None,
        burst_share=share,
        burst_ratio=ratio,
        unknown_share=unknown / total,
    )


def _bursts(hours: Mapping[datetime, int], since: datetime) -> tuple[float | None, float | None]:
    recent = [count for hour, count in hours.items() if hour >= since]
    if len(hours) < LEAST_HOURS or not recent:
        return None, None
    peaks: dict[date, int] = {}
    for hour, count in hours.items():
        peaks[hour.date()] = max(count, peaks.get(hour.date(), 0))
    third = sorted(peaks.values())[-BUSY_DAYS] if len(peaks) >= BUSY_DAYS else 0
    busy = max(float(np.quantile(list(hours.values()), BUSY, method="lower")), third)
    bursts = sum(count for count in recent if count > BURST_FACTOR * busy)
    return bursts / sum(recent), max(recent) / busy
