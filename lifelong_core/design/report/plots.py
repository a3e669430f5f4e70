"""Geometry of plots: axes, curves, points and bars, in pixels of an SVG that a template draws."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Point: TypeAlias = tuple[float, float]
Range: TypeAlias = tuple[float, float]
LineKind: TypeAlias = Literal[
    "main",
    "second",
    "reference",
    "series-0",
    "series-1",
    "series-2",
    "series-3",
    "series-4",
    "series-5",
]

LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 10.0, 40.0
"""margins of a panel for the texts beside its axes"""
TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


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


@dataclass(frozen=True)
class Line:
    """A curve."""

    path: str
    """`d` of an SVG path; empty where the curve has no point"""
    kind: LineKind = "main"
    id: str | None = None
    """by which other panels draw it as well"""


@dataclass(frozen=True)
class Dot:
    """A value with its interval."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    """pixels of the interval's ends: upright in a panel, level in a forest plot"""
    title: str = ""


@dataclass(frozen=True)
class Bar:
    """A count."""

    x: float
    y: float
    width: float
    height: float
    title: str = ""


@dataclass(frozen=True)
class Axis:
    """One side of a panel."""

    name: str
    ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class Panel:
    """One plot with two axes."""

    title: str
    description: str
    """text alternative of the plot"""
    width: float
    height: float
    x: Axis
    y: Axis
    area: tuple[float, float, float, float]
    """left, top, right and bottom edge of the part between the axes"""
    behind: tuple[str, ...] = ()
    """ids of curves of other panels, drawn for orientation"""
    bands: tuple[Line, ...] = ()
    """areas behind the lines, in the colours of their lines"""
    lines: tuple[Line, ...] = ()
    dots: tuple[Dot, ...] = ()
    operating: tuple[Dot, ...] = ()
    """where the decisions are taken"""
    cut_offs: tuple[Dot, ...] = ()
    """where a metric reaches its target"""
    bars: tuple[Bar, ...] = ()
    bars_note: str = ""


@dataclass(frozen=True)
class Frame:
    """The scales of a panel of a given size."""

    x: Scale
    y: Scale
    width: float
    height: float

    @classmethod
    def of(cls, x: Range, y: Range, *, width: float, height: float, below: float = 0) -> "Frame":
        """A frame for these ranges; `below` pixels stay free under the x axis of the panel."""
        across = Scale(x, (LEFT, width - RIGHT))
        upward = Scale(y, (height - BOTTOM - below, TOP))
        return cls(across, upward, width, height)

    @property
    def area(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom edge."""
        return (self.x.pixels[0], self.y.pixels[1], self.x.pixels[1], self.y.pixels[0])

    def line(self, points: Iterable[Point], kind: LineKind = "main", *, name: str | None = None) -> Line:
        """A curve through finite points."""
        return Line(path_through([(self.x(x), self.y(y)) for x, y in points]), kind, name)

    def panel(self, title: str, description: str, *, x_name: str, y_name: str, **parts: Any) -> Panel:
        """A plot in this frame."""
        most = 6 if self.width > 300 else 5
        return Panel(
            title=title,
            description=description,
            width=self.width,
            height=self.height,
            x=Axis(x_name, self.x.ticks(most)),
            y=Axis(y_name, self.y.ticks(most)),
            area=self.area,
            **parts,
        )

    def dot(self, x: float, y: float, low: float | None, high: float | None, title: str = "") -> Dot:
        """A point with its interval along y."""
        ends = (None, None) if low is None or high is None else (self.y(low), self.y(high))
        return Dot(self.x(x), self.y(y), *ends, title)


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
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    air = 0.1 * (high - low)
    if air < 1e-6:
        air = max(0.05 * abs(high), 0.01)
    return round(max(low - air, within[0]), 12), round(min(high + air, within[1]), 12)
