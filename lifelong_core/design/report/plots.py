"""Geometry of plots: axes, curves, points and bars, in pixels of an SVG that a template draws."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lifelong_core.charts.scales import Point, Range, Scale, Tick, path_through

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
