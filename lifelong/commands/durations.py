"""Times on the command line: `90d`, `24h`, or a date."""

import re
from datetime import datetime, timedelta
from typing import Any

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Duration(click.ParamType):
    """A number with a unit, such as `90d`, as a time difference.

    Examples:
        >>> Duration().convert("36h", None, None)
        datetime.timedelta(days=1, seconds=43200)
    """

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The time difference; a usage error if it is none."""
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d{1,6})([smhdw])", str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no time span. Give a number and s, m, h, d or w: 90d, 24h.", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


class Moment(click.ParamType):
    """A date or time in ISO 8601, such as `2027-01-31T12:00+01:00`; without a zone, that of this host."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """An aware time; a usage error if it is none."""
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(str(value).strip()).astimezone()
        except (ValueError, OverflowError, OSError):
            self.fail(f"{value!r} is no time. Give it as 2027-01-31 or 2027-01-31T12:00+01:00.", param, ctx)
