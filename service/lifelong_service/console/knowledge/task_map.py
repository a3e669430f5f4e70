"""The task map: tasks in the plane, close together where their distances are small, as marks with labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from lifelong_core.values.arrays import Floats
from lifelong_service.console.knowledge.map_layout import Canvas, fit_points, nearest_point, place_labels

Kind: TypeAlias = Literal["target", "recommended", "other"]

MOST_MARKS = 61
"""Tasks in the map: the target and the closest sources."""
_WIDEST_LABEL = 40
"""Longer names are shortened, in characters."""
_LETTER = 0.58
"""Mean width of a character, in font sizes."""
_LINE = 1.25
"""Height of a label, in font sizes."""
_LEADER = 6.0
"""Labels farther from their mark than this are joined to it by a line, in pixels."""


@dataclass(frozen=True)
class MappedTask:
    """A task in the map."""

    name: str
    kind: Kind
    number: int | None
    """its place in the list of suggestions; None: the target"""
    title: str
    """what a pointer on the mark, or a screen reader, says"""
    path: str
    """where the mark leads to"""


@dataclass(frozen=True)
class Style:
    """Size of a drawing and of its marks, in pixels, and what its labels say."""

    name: Literal["wide", "small"]
    canvas: Canvas
    font: float
    radius: float
    labels: Literal["names", "numbers"]


STYLES = (
    Style("wide", Canvas(1080, 760, 26), 13, 6, "names"),
    Style("small", Canvas(360, 380, 16), 12, 4, "numbers"),
)
"""The map of a screen or a page, and that of a telephone."""


@dataclass(frozen=True)
class Mark:
    """One task as it is drawn; lengths in pixels."""

    task: MappedTask
    x: float
    y: float
    label: str
    text_x: float | None
    """None: no place is left for the label"""
    text_y: float
    anchor: Literal["start", "middle", "end"]
    leader: tuple[float, float] | None
    """where the line from the mark to the label ends; None: the label is next to its mark"""


@dataclass(frozen=True)
class Drawing:
    """A map in one style."""

    style: Style
    marks: tuple[Mark, ...]
    """the target last, so that nothing covers it"""


def draw_map(tasks: Sequence[MappedTask], positions: Floats, style: Style) -> Drawing:
    """Return the marks and labels of a map.

    Args:
        tasks: n tasks, the more important first: their labels choose their places first.
        positions: (n, 2), in any unit.
        style: the size.
    """
    texts = [_label(task, style) for task in tasks]
    points = fit_points(positions, style.canvas, spacing=2 * style.radius + 2)
    sizes = np.array([[(len(text) * _LETTER + 0.6) * style.font, _LINE * style.font] for text in texts])
    corners = place_labels(points, sizes, np.arange(len(tasks)), style.canvas, radius=style.radius + 1)
    marks = [
        _mark(task, text, point, corner, size, style)
        for task, text, point, corner, size in zip(tasks, texts, points, corners, sizes, strict=True)
    ]
    return Drawing(style, tuple(sorted(marks, key=lambda mark: mark.task.kind == "target")))


def _label(task: MappedTask, style: Style) -> str:
    if style.labels == "numbers":
        return "target" if task.number is None else str(task.number)
    return task.name if len(task.name) <= _WIDEST_LABEL else f"{task.name[: _WIDEST_LABEL - 1]}…"


def _mark(task: MappedTask, text: str, point: Floats, corner: Floats, size: Floats, style: Style) -> Mark:
    x, y = (round(float(value), 1) for value in point)
    if np.isnan(corner[0]):
        return Mark(task, x, y, text, None, y, "start", None)
    left, top = (float(value) for value in corner)
    width, height = (float(value) for value in size)
    # A label that is shorter or longer than estimated then stays beside its mark.
    anchor, text_x = "middle", left + width / 2
    if left > x:
        anchor, text_x = "start", left + 0.3 * style.font
    elif left + width < x:
        anchor, text_x = "end", left + width - 0.3 * style.font
    end = nearest_point(point, corner, size)
    is_far = np.hypot(*(end - point)) > style.radius + _LEADER
    leader = (round(float(end[0]), 1), round(float(end[1]), 1)) if is_far else None
    return Mark(task, x, y, text, round(text_x, 1), round(top + 0.75 * height, 1), anchor, leader)
