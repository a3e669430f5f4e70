"""Named states over time, one row for each thing."""

from dataclasses import dataclass
from datetime import datetime

from lifelong_core.charts.figures import (
    CHARACTER,
    Key,
    Size,
    Tone,
    bottom_labels,
    figure,
    row_label,
    row_scale,
    tip,
)
from lifelong_core.charts.markup import Markup, element, joined
from lifelong_core.charts.scales import time_ticks

ROW = 26.0


@dataclass(frozen=True)
class Span:
    """A state from one time to another; it is written on the span where it fits, and shows with `title` at it."""

    since: datetime
    until: datetime
    state: str
    tone: Tone = "calm"
    title: str = ""


@dataclass(frozen=True)
class StateTimeline:
    """A chart of states: rows of (label, spans in order of time), and the time that is shown."""

    title: str
    description: str
    rows: tuple[tuple[str, tuple[Span, ...]], ...]
    since: datetime
    until: datetime

    def draw(self) -> Markup:
        """The figure, with a legend of the states."""
        keys = [Key("area", span.state, span.tone) for _, spans in self.rows for span in spans]
        return figure(self.title, self.description, self._parts, sorted(set(keys), key=lambda key: key.name))

    def _parts(self, size: Size) -> tuple[float, Markup]:
        height = len(self.rows) * ROW + size.bottom
        x = row_scale((self.since.timestamp(), self.until.timestamp()), size)

        def drawn(span: Span, top: float) -> Markup:
            left, right = (
                min(max(x(at.timestamp()), x.pixels[0]), x.pixels[1]) for at in (span.since, span.until)
            )
            area = element("rect", class_="area", x=left, y=top, width=max(right - left, 1.5), height=ROW - 4)
            fits = right - left > (len(span.state) + 2) * CHARACTER
            text = element("text", span.state, class_="on", x=left + 5, y=top + 15) if fits else Markup()
            return element("g", tip(span.title or span.state), area, text, class_=span.tone)

        rows = (
            joined(
                row_label(label, size, place * ROW + 17), *(drawn(span, place * ROW + 2) for span in spans)
            )
            for place, (label, spans) in enumerate(self.rows)
        )
        return height, joined(*rows, bottom_labels(time_ticks(x, most=size.row_ticks), size, height))
