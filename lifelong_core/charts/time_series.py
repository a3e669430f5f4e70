"""Values over time: lines with bands, steps, points with whiskers, thresholds, and marks of events."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lifelong_core.charts.figures import Key, Size, Tone, bottom_labels, figure, level_grid, series_look, tip
from lifelong_core.charts.markup import Markup, element, joined
from lifelong_core.charts.scales import Range, Scale, pad_range, time_ticks

MOST_DOTS = 120
"""A longer piece of a line is drawn without a dot at each sample."""


@dataclass(frozen=True)
class Sample:
    """A value at a time, with its interval."""

    at: datetime
    value: float
    low: float | None = None
    high: float | None = None
    title: str = ""
    """text that shows at the sample"""


@dataclass(frozen=True)
class Series:
    """Samples in order of time.

    Lines and bands join the samples of a piece; a gap parts the pieces. A step holds its value until the next sample.
    """

    name: str
    pieces: tuple[tuple[Sample, ...], ...]
    kind: Literal["line", "step", "points"] = "line"
    colour: int = 0

    @property
    def samples(self) -> Iterator[Sample]:
        """All samples with a number."""
        return (one for piece in self.pieces for one in piece if math.isfinite(one.value))


@dataclass(frozen=True)
class Mark:
    """An event: an upright line."""

    at: datetime
    name: str
    """kind of the event, for the legend"""
    text: str = ""
    """short text beside the line"""
    title: str = ""
    tone: Tone = "warn"


@dataclass(frozen=True)
class Threshold:
    """A level line with its name."""

    value: float
    name: str
    tone: Tone = "bad"


@dataclass(frozen=True)
class TimeSeries:
    """A chart of values over time.

    `within` limits the axis of values; `span` is the time that is shown, default: that of the samples. Marks outside of
    it are left out.
    """

    title: str
    description: str
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    within: Range = (-math.inf, math.inf)
    span: tuple[datetime, datetime] | None = None

    def draw(self) -> Markup:
        """The figure; without a sample only its caption and a line that says so."""
        times = [one.at.timestamp() for series in self.series for one in series.samples]
        if not times:
            return element(
                "figure", element("figcaption", self.title), element("p", "No data."), class_="chart"
            )
        since, until = (at.timestamp() for at in self.span) if self.span else (min(times), max(times))
        across = (since, until) if until > since else (since - 3_600, since + 3_600)
        marks = [mark for mark in self.marks if across[0] <= mark.at.timestamp() <= across[1]]

        def parts(size: Size) -> tuple[float, Markup]:
            x = Scale(across, (size.left, size.width - size.right))
            y = Scale(self._values(), (size.height - size.bottom, size.top))
            return size.height, joined(
                level_grid(y.ticks(5), size),
                bottom_labels(time_ticks(x, most=size.x_ticks), size, size.height),
                *(_line(one, x, y) for one in self.series if one.kind != "points"),
                *(_threshold(one, y, size) for one in self.thresholds),
                *(_mark(one, x, y) for one in marks),
                *(_points(one, x, y) for one in self.series if one.kind == "points"),
            )

        return figure(self.title, self.description, parts, [*self._keys(), *_mark_keys(marks)])

    def _values(self) -> Range:
        samples = [one for series in self.series for one in series.samples]
        numbers = [
            number for one in samples for number in (one.value, one.low, one.high) if number is not None
        ]
        return pad_range([*numbers, *(one.value for one in self.thresholds)], within=self.within)

    def _keys(self) -> Iterator[Key]:
        for series in self.series:
            yield Key(series.kind, series.name, series_look(series.colour))
        for threshold in self.thresholds:
            yield Key("threshold", threshold.name, threshold.tone)


def _mark_keys(marks: Sequence[Mark]) -> Iterator[Key]:
    return (Key("mark", mark.name, mark.tone) for mark in marks)


def _line(series: Series, x: Scale, y: Scale) -> Markup:
    """The line of a series, with the band of its intervals and a dot at each sample."""
    drawn: list[Markup] = []
    for piece in series.pieces:
        samples = [one for one in piece if math.isfinite(one.value)]
        places = [(x(one.at.timestamp()), y(one.value)) for one in samples]
        if series.kind == "step":
            drawn.append(_step(places))
            continue
        ends = [_ends(one, y) for one in samples]
        has_band = len(samples) > 1 and None not in ends
        if has_band:
            upper = [f"{place[0]:g},{end[1]:g}" for place, end in zip(places, ends, strict=True) if end]
            lower = [f"{place[0]:g},{end[0]:g}" for place, end in zip(places, ends, strict=True) if end]
            drawn.append(element("polygon", class_="band", points=" ".join([*upper, *reversed(lower)])))
        if len(samples) > 1:
            drawn.append(
                element("polyline", class_="line", points=" ".join(f"{a:g},{b:g}" for a, b in places))
            )
        if len(samples) <= MOST_DOTS:
            drawn += [_dot(one, x, y, radius=2.5, caps=False) for one in samples]
    return element("g", *drawn, class_=series_look(series.colour))


def _step(places: Sequence[tuple[float, float]]) -> Markup:
    path = "".join(f"H{a:g}V{b:g}" if index else f"M{a:g} {b:g}" for index, (a, b) in enumerate(places))
    return element("path", class_="line step", d=path)


def _points(series: Series, x: Scale, y: Scale) -> Markup:
    dots = (_dot(one, x, y, radius=4, caps=True) for one in series.samples)
    return element("g", *dots, class_=series_look(series.colour))


def _dot(sample: Sample, x: Scale, y: Scale, *, radius: float, caps: bool) -> Markup:
    """A sample with its interval; `caps` close the ends of the interval."""
    across, ends = x(sample.at.timestamp()), _ends(sample, y)
    whisker = Markup()
    if ends is not None:
        path = f"M{across:g} {ends[0]:g}V{ends[1]:g}"
        if caps:
            path += "".join(f"M{across - 4:g} {end:g}h8" for end in ends)
        whisker = element("path", class_="whisker" if caps else "whisker thin", d=path)
    circle = element("circle", class_="point" if caps else "dot", cx=across, cy=y(sample.value), r=radius)
    return element("g", tip(sample.title), whisker, circle)


def _ends(sample: Sample, y: Scale) -> tuple[float, float] | None:
    low, high = sample.low, sample.high
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return y(low), y(high)


def _mark(mark: Mark, x: Scale, y: Scale) -> Markup:
    at, (bottom, top) = x(mark.at.timestamp()), y.pixels
    line = element("path", class_="mark", d=f"M{at:g} {top:g}V{bottom:g}")
    text = element("text", mark.text, x=at + 3, y=top + 10) if mark.text else Markup()
    return element("g", tip(mark.title or mark.name), line, text, class_=mark.tone)


def _threshold(threshold: Threshold, y: Scale, size: Size) -> Markup:
    path = f"M{size.left:g} {y(threshold.value):g}H{size.width - size.right:g}"
    name = tip(f"{threshold.name}: {threshold.value:.4g}")
    return element("path", name, class_=f"threshold {threshold.tone}", d=path)
