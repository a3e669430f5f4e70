"""Places of points and of their labels in a drawing, so that no two labels overlap."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.values.arrays import Floats, Integers, Mask

_CELL = 3
"""Edge of a cell of the grid of occupied places, in pixels."""
_ROUNDS = 40
"""Rounds in which points that are too close are moved apart."""
_REACHES = (3.0, 12.0, 48.0, 192.0, 1e6)
"""Distances between label and point, in pixels: labels with a place next to their point choose before all others."""


@dataclass(frozen=True)
class Canvas:
    """Size of a drawing, in pixels."""

    width: int
    height: int
    margin: int
    """to the outermost points"""


def fit_points(positions: Floats, canvas: Canvas, *, spacing: float) -> Floats:
    """Return positions in pixels, with one scale for both axes.

    Args:
        positions: (n, 2), in any unit; the second axis points upwards.
        canvas: size of the drawing; its second axis points downwards.
        spacing: points closer than this are moved apart, in pixels; 0: none is moved.

    Returns:
        (n, 2), within the margins.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    room = np.array([canvas.width, canvas.height]) - 2.0 * canvas.margin
    extent = high - low
    scale = min((room[axis] / extent[axis] for axis in (0, 1) if extent[axis] > 0), default=1.0)
    points = (positions - (low + high) / 2) * [scale, -scale] + [canvas.width / 2, canvas.height / 2]
    return _separate(points, spacing, canvas)


def place_labels(points: Floats, sizes: Floats, order: Integers, canvas: Canvas, *, radius: float) -> Floats:
    """Return the upper left corner of each label: the free place that is closest to its point.

    Args:
        points: (n, 2), in pixels.
        sizes: (n, 2), width and height of the labels, in pixels.
        order: (n,), indices of the labels; earlier labels choose first.
        canvas: size of the drawing.
        radius: of the marks of the points, which no label covers, in pixels.

    Returns:
        (n, 2), in pixels; nan where no place is left.
    """
    taken = np.zeros((canvas.height // _CELL, canvas.width // _CELL), dtype=bool)
    for point in points:
        _take(taken, point - radius, point + radius)
    corners = np.full((len(points), 2), np.nan)
    for reach in _REACHES:
        for index in order:
            if np.isnan(corners[index, 0]):
                corners[index] = _place(taken, points[index], sizes[index], radius + reach)
    return corners


def nearest_point(point: Floats, corner: Floats, size: Floats) -> Floats:
    """Return the point of a label that is closest to a point; all (..., 2), in pixels."""
    return np.clip(point, corner, corner + size)


def _separate(points: Floats, spacing: float, canvas: Canvas) -> Floats:
    """Move points apart that are closer than `spacing`; pairs that coincide part in fixed directions."""
    count = len(points)
    angle = 2 * np.pi * np.arange(count) / count
    points = points + 1e-3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    low = np.full(2, float(canvas.margin))
    high = np.array([canvas.width, canvas.height]) - low
    for _ in range(_ROUNDS):
        apart = points[:, None] - points[None]
        distance = np.hypot(apart[..., 0], apart[..., 1])
        np.fill_diagonal(distance, np.inf)
        overlap = np.clip(spacing - distance, 0, None)
        if not overlap.any():
            break
        points = points + (apart * (overlap / distance)[..., None] / 2).sum(axis=1)
    return np.clip(points, low, high)


def _place(taken: Mask, point: Floats, size: Floats, reach: float) -> Floats:
    """Take the best free place within `reach` of a point, and return its upper left corner; nan: there is none."""
    limits = np.array(taken.shape[::-1], dtype=float)
    first = np.clip((point - reach - size) // _CELL, 0, limits).astype(int)
    last = np.clip((point + reach + size) // _CELL + 1, 0, limits).astype(int)
    free = _free_corners(taken[first[1] : last[1], first[0] : last[0]], size)
    row, column = np.nonzero(free)
    corners = np.stack([column + first[0], row + first[1]], axis=1) * float(_CELL)
    distance = np.hypot(*(nearest_point(point, corners, size) - point).T)
    corners, distance = corners[distance <= reach], distance[distance <= reach]
    if not len(corners):
        return np.full(2, np.nan)
    # Beside a point, a label reads better than above or below it, and level with it better than shifted.
    offset = np.abs(corners + size / 2 - point)
    corner = corners[np.argmin(distance + 0.1 * offset[:, 1] + 0.01 * offset[:, 0])]
    _take(taken, corner, corner + size)
    for along in np.linspace(0, 1, 20):  # the line between point and label
        place = point + along * (nearest_point(point, corner, size) - point)
        _take(taken, place - 1, place + 1)
    return corner


def _take(taken: Mask, low: Floats, high: Floats) -> None:
    """Mark the cells of a box as taken."""
    left, top = np.maximum(low // _CELL, 0).astype(int)
    right, bottom = np.ceil(high / _CELL).astype(int)
    taken[top:bottom, left:right] = True


def _free_corners(taken: Mask, size: Floats) -> Mask:
    """Return for each cell whether a box with this upper left corner covers no taken cell and stays within."""
    width, height = (int(-(-length // _CELL)) for length in size)
    rows, columns = taken.shape
    if height > rows or width > columns:
        return np.zeros((0, 0), dtype=bool)
    sums = np.zeros((rows + 1, columns + 1), dtype=np.int32)
    sums[1:, 1:] = taken.cumsum(axis=0, dtype=np.int32).cumsum(axis=1, dtype=np.int32)
    below, above = sums[height:], sums[:-height]
    return below[:, width:] - above[:, width:] == below[:, :-width] - above[:, :-width]
