"""What charts share: sizes, tones, axes, the figure around the drawings, and its legend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lifelong_core.charts.markup import Markup, element, joined
from lifelong_core.charts.scales import Scale, Tick

Tone: TypeAlias = Literal["good", "warn", "bad", "accent", "calm"]
"""What a colour says: as wanted, to look at, wrong, changed, nothing to do."""

SERIES = 8
"""Colours of series; a further series takes the first colour again."""
CHARACTER = 6.6
"""Mean width of a character of a label, in pixels."""


@dataclass(frozen=True)
class Size:
    """The width of a drawing, and the margins of its axes in pixels."""

    name: str
    width: float
    height: float
    x_ticks: int
    row_ticks: int
    """ticks right of a column of labels"""
    labels: float
    """width of that column"""
    left: float = 44.0
    right: float = 10.0
    top: float = 10.0
    bottom: float = 24.0


WIDE = Size("wide", 720.0, 240.0, x_ticks=9, row_ticks=7, labels=190.0)
SMALL = Size("small", 330.0, 220.0, x_ticks=4, row_ticks=3, labels=110.0)


@dataclass(frozen=True)
class Key:
    """An entry of a legend: a swatch in the look of what it names."""

    kind: Literal["band", "line", "step", "points", "mark", "threshold", "area"]
    name: str
    look: str
    """CSS class of the colour"""


def series_look(colour: int) -> str:
    """The CSS class of a series' colour."""
    return f"series-{colour % SERIES}"


def figure(
    title: str, description: str, parts: Callable[[Size], tuple[float, Markup]], keys: Sequence[Key] = ()
) -> Markup:
    """A figure with its caption, the drawing in both sizes, and the legend.

    Args:
        title: caption, and name of the drawing.
        description: text alternative: what the drawing shows, with its main numbers.
        parts: for a size the height of the drawing and its elements.
        keys: entries of the legend.
    """
    drawings = [
        svg(size.width, *parts(size), title=title, description=description, look=size.name)
        for size in (WIDE, SMALL)
    ]
    legend = element("ul", *map(_entry, dict.fromkeys(keys)), class_="legend plain") if keys else Markup()
    return element("figure", element("figcaption", title), *drawings, legend, class_="chart")


def svg(
    width: float, height: float, *content: str, title: str, description: str = "", look: str | None = None
) -> Markup:
    """A drawing with its text alternative."""
    words = [element("title", title)]
    if description:
        words.append(element("desc", description))
    view = f"0 0 {width:g} {height:g}"
    return element("svg", *words, *content, class_=look, viewBox=view, role="img")


def tip(text: str) -> Markup:
    """A text that shows at a part of a drawing."""
    return element("title", text) if text else Markup()


def level_grid(ticks: Sequence[Tick], size: Size) -> Markup:
    """Level lines with their numbers at the left."""
    return joined(
        *(
            joined(
                element("path", class_="grid", d=f"M{size.left:g} {tick.at:g}H{size.width - size.right:g}"),
                element("text", tick.text, x=size.left - 6, y=tick.at + 4, text_anchor="end"),
            )
            for tick in ticks
        )
    )


def bottom_labels(ticks: Sequence[Tick], size: Size, height: float) -> Markup:
    """The texts of ticks below the drawing; at its ends they stay within it."""
    margin = 3 * CHARACTER
    return joined(
        *(
            element(
                "text",
                tick.text,
                x=min(max(tick.at, margin), size.width - margin),
                y=height - 6,
                text_anchor="middle",
            )
            for tick in ticks
        )
    )


def row_label(text: str, size: Size, y: float) -> Markup:
    """The label of a row, shortened to its column; the whole text shows at it."""
    most = int(size.labels / CHARACTER)
    short = text if len(text) <= most else text[: most - 1] + "…"
    return element("text", tip(text if short != text else ""), short, class_="row", x=0, y=y)


def row_scale(values: tuple[float, float], size: Size) -> Scale:
    """The scale of rows, right of their labels."""
    return Scale(values, (size.labels + 8, size.width - size.right))


def _entry(key: Key) -> Markup:
    shapes = {
        "band": element("rect", class_="band", width=26, height=12),
        "area": element("rect", class_="area", width=26, height=12),
        "line": element("path", class_="line", d="M0 6H26"),
        "step": element("path", class_="line step", d="M0 6H26"),
        "points": joined(
            element("path", class_="whisker", d="M13 0V12"),
            element("circle", class_="point", cx=13, cy=6, r=4),
        ),
        "mark": element("path", class_="mark", d="M13 0V12"),
        "threshold": element("path", class_="threshold", d="M0 6H26"),
    }
    swatch = element(
        "svg", shapes[key.kind], class_=f"key {key.look}", viewBox="0 0 26 12", aria_hidden="true"
    )
    return element("li", swatch, key.name)
