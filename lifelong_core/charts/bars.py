"""Level bars with intervals, and a threshold across them."""

import math
from dataclasses import dataclass

from lifelong_core.charts.figures import Key, Size, Tone, bottom_labels, figure, row_label, row_scale, tip
from lifelong_core.charts.markup import Markup, element, joined
from lifelong_core.charts.scales import Range, Scale, pad_range

ROW = 26.0


@dataclass(frozen=True)
class Bar:
    """A value with its interval; `title` shows at it."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    title: str = ""
    tone: Tone = "accent"


@dataclass(frozen=True)
class Bars:
    """A chart of bars from 0, in the given order. `threshold` is a value and its name."""

    title: str
    description: str
    bars: tuple[Bar, ...]
    threshold: tuple[float, str] | None = None
    within: Range = (-math.inf, math.inf)

    def draw(self) -> Markup:
        """The figure."""
        keys = (
            [Key("threshold", f"{self.threshold[1]}: {self.threshold[0]:.4g}", "bad")]
            if self.threshold
            else []
        )
        return figure(self.title, self.description, self._parts, keys)

    def _parts(self, size: Size) -> tuple[float, Markup]:
        height = len(self.bars) * ROW + size.bottom
        ends = [
            number for bar in self.bars for number in (bar.value, bar.low, bar.high) if number is not None
        ]
        ends += [0.0] if self.threshold is None else [0.0, self.threshold[0]]
        low, high = pad_range(ends, within=self.within)
        x = row_scale((low if min(ends) < 0 else 0.0, high), size)
        ticks = x.ticks(size.row_ticks)
        grid = (
            element("path", class_="grid", d=f"M{tick.at:g} 0V{height - size.bottom:g}") for tick in ticks
        )
        bars = (_bar(bar, x, size, place * ROW) for place, bar in enumerate(self.bars))
        line = Markup()
        if self.threshold is not None:
            path = f"M{x(self.threshold[0]):g} 0V{height - size.bottom:g}"
            line = element("path", tip(self.threshold[1]), class_="threshold bad", d=path)
        return height, joined(*grid, *bars, line, bottom_labels(ticks, size, height))


def _bar(bar: Bar, x: Scale, size: Size, top: float) -> Markup:
    left, right = sorted((x(0), x(bar.value)))
    middle = top + ROW / 2
    area = element("rect", class_="area", x=left, y=top + 4, width=max(right - left, 1), height=ROW - 8)
    whisker = Markup()
    if bar.low is not None and bar.high is not None:
        path = f"M{x(bar.low):g} {middle:g}H{x(bar.high):g}"
        path += "".join(f"M{x(end):g} {middle - 4:g}v8" for end in (bar.low, bar.high))
        whisker = element("path", class_="whisker", d=path)
    name = tip(bar.title or f"{bar.label}: {bar.value:.3g}")
    return joined(row_label(bar.label, size, middle + 4), element("g", name, area, whisker, class_=bar.tone))
