"""Scales of axes: from values and times to pixels, and round numbers for ticks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
Range: TypeAlias = tuple[float, float]

TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MINUTE, HOUR, DAY = 60, 3_600, 86_400
TIME_STEPS = (
    *(MINUTE * count for count in (1, 2, 5, 15, 30)),
    *(HOUR * count for count in (1, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 4, 7, 14, 28, 91, 364)),
)
"""distances of ticks on an axis of time, in seconds"""


@dataclass(frozen=True)
class Tick:
    """A number on an axis."""

    at: float
    """pixels"""
    text: str


@dataclass(frozen=True)
class Scale:
    """A linear map from a range of values to pixels."""

    values: Range
    pixels: Range

    def __call__(self, value: float) -> float:
        """The pixel of a value; values far outside the range lie one axis length away."""
        low, high = self.values
        share = min(max((value - low) / (high - low), -1.0), 2.0)
        return round(self.pixels[0] + share * (self.pixels[1] - self.pixels[0]), 1)

    def ticks(self, most: int = 6) -> tuple[Tick, ...]:
        """Round numbers of the range, at most so many."""
        return tuple(Tick(self(value), text) for value, text in round_numbers(*self.values, most=most))


def path_through(points: Sequence[Point]) -> str:
    """`d` of an SVG path; points on the line between their neighbours are left out.

    Examples:
        >>> path_through([(0.0, 0.0), (0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (2.0, 5.5)])
        'M0 0L2 2L2 5.5'
    """
    kept: list[Point] = []
    for point in points:
        if kept and point == kept[-1]:
            continue
        if len(kept) > 1 and _on_one_line(kept[-2], kept[-1], point):
            kept[-1] = point
        else:
            kept.append(point)
    return "".join(f"{'L' if index else 'M'}{x:g} {y:g}" for index, (x, y) in enumerate(kept))


def _on_one_line(first: Point, second: Point, third: Point) -> bool:
    """Whether the second point lies between the others, up to the rounding of pixels."""
    along = (second[0] - first[0], second[1] - first[1])
    further = (third[0] - second[0], third[1] - second[1])
    turn = along[0] * further[1] - along[1] * further[0]
    ahead = along[0] * further[0] + along[1] * further[1]
    return ahead > 0 and abs(turn) < 1e-9


def round_numbers(low: float, high: float, *, most: int = 6) -> tuple[tuple[float, str], ...]:
    """Round numbers in a range, evenly spaced, with their text.

    Examples:
        >>> [text for _, text in round_numbers(0, 1)]
        ['0', '0.2', '0.4', '0.6', '0.8', '1']
        >>> [text for _, text in round_numbers(0.83, 0.97, most=4)]
        ['0.85', '0.90', '0.95']
    """
    rough = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        step * power for step in TICK_STEPS if step * power >= rough * (1 - 1e-9) or step == TICK_STEPS[-1]
    )
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    if round(step * 10**places, 6) % 1:
        places += 1
    values = [index * step for index in range(first, last + 1)]
    return tuple((value, _tick_text(value, places)) for value in values)


def _tick_text(value: float, places: int) -> str:
    if value == 0 or (places == 0 and abs(value) < 1e6):
        return f"{value:.0f}"
    return f"{value:.{places}f}".removesuffix("." + "0" * places) if places <= 4 else f"{value:.3g}"


def pad_range(values: Iterable[float], *, within: Range = (-math.inf, math.inf)) -> Range:
    """A range with a margin around the values, within the given limits.

    Examples:
        >>> pad_range([0.5, 0.9], within=(0, 1))
        (0.46, 0.94)
        >>> pad_range([2.0])
        (1.9, 2.1)
        >>> pad_range([0.0], within=(0, math.inf))
        (0, 1.0)
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    air = 0.1 * (high - low)
    if air < 1e-6:
        air = max(0.05 * abs(high), 0.01) if high else 1.0
    return round(max(low - air, within[0]), 12), round(min(high + air, within[1]), 12)


def time_ticks(scale: Scale, *, most: int) -> tuple[Tick, ...]:
    """Round times (UTC) of a scale of seconds since 1970, at most about so many.

    Examples:
        >>> week = Scale((0, 7 * 86_400), (0, 700))
        >>> [tick.text for tick in time_ticks(week, most=4)]
        ['1 Jan', '3 Jan', '5 Jan', '7 Jan']
        >>> [tick.text for tick in time_ticks(Scale((0, 86_400), (0, 100)), most=3)]
        ['1 Jan', '12:00', '2 Jan']
    """
    low, high = scale.values
    step = next((step for step in TIME_STEPS if (high - low) / step <= most), TIME_STEPS[-1])
    places = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    return tuple(Tick(scale(at), _time_text(at, step)) for at in places)


def _time_text(at: int, step: int) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    if at % DAY:
        return f"{moment:%H:%M}"
    return f"{moment:%b %Y}" if step > 28 * DAY else f"{moment.day} {moment:%b}"
