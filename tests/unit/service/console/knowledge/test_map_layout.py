"""Places of points and labels: nothing overlaps, nothing leaves the drawing."""

import numpy as np
import pytest

from lifelong_core.values.arrays import Floats
from lifelong_service.console.knowledge.map_layout import Canvas, fit_points, nearest_point, place_labels

CANVAS = Canvas(1080, 760, 26)
RADIUS = 7.0


def clustered(count: int) -> Floats:
    """Half of the points in a corner, some of them at the same place, as tasks of one data set are."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(count, 2)) * np.where(np.arange(count) % 2, 0.05, 1.0)[:, None]
    points[1::4] = points[min(1, count - 1)]
    return points


def sizes_of(count: int) -> Floats:
    return np.random.default_rng(1).uniform([40, 16], [260, 16.5], (count, 2))


@pytest.mark.parametrize("count", [1, 2, 28, 71])
def test_no_label_covers_another_or_a_mark(count: int) -> None:
    points, sizes = fit_points(clustered(count), CANVAS, spacing=2 * RADIUS), sizes_of(count)
    corners = place_labels(points, sizes, np.arange(count), CANVAS, radius=RADIUS)
    ends = corners + sizes
    assert np.isfinite(corners).all()
    assert (corners >= 0).all()
    assert (ends <= [CANVAS.width, CANVAS.height]).all()
    for index in range(count):
        others = np.arange(count) != index
        apart = (ends[index] <= corners[others]) | (ends[others] <= corners[index])
        assert apart.any(axis=1).all()
        distance = np.hypot(*(nearest_point(points, corners[index], sizes[index]) - points).T)
        assert distance.min() >= RADIUS


def test_a_label_with_room_is_beside_its_point_and_level_with_it() -> None:
    point, size = np.array([[500.0, 400.0]]), np.array([[120.0, 16.0]])
    (corner,) = place_labels(point, size, np.arange(1), CANVAS, radius=RADIUS)
    assert corner[0] == pytest.approx(500 + RADIUS, abs=4) or corner[0] + 120 == pytest.approx(
        500 - RADIUS, abs=4
    )
    assert corner[1] + 8 == pytest.approx(400, abs=4)


def test_earlier_labels_choose_first() -> None:
    points, sizes = np.array([[60.0, 20.0], [60.0, 44.0]]), np.array([[100.0, 16.0]] * 2)
    small = Canvas(180, 66, 10)
    for order in ([0, 1], [1, 0]):
        corners = place_labels(points, sizes, np.array(order), small, radius=3)
        alone = place_labels(points[order[:1]], sizes[:1], np.arange(1), small, radius=3)
        assert abs(corners[order[0]] - alone[0]).max() <= 12


def test_a_label_without_room_is_left_out() -> None:
    points, sizes = np.array([[30.0, 30.0], [60.0, 30.0]]), np.array([[70.0, 40.0], [400.0, 10.0]])
    corners = place_labels(points, sizes, np.array([1, 0]), Canvas(90, 60, 10), radius=3)
    assert np.isnan(corners).all()


def test_points_keep_the_proportions_of_their_distances() -> None:
    positions = np.random.default_rng(2).normal(size=(20, 2))
    points = fit_points(positions, CANVAS, spacing=0)
    before, after = (np.hypot(*(one[:, None] - one[None]).transpose(2, 0, 1)) for one in (positions, points))
    pairs = np.triu_indices(20, 1)
    assert np.ptp(after[pairs] / before[pairs]) < 0.05
    # The second axis of a screen points downwards.
    assert np.argmax(positions[:, 1]) == np.argmin(points[:, 1])
    assert points.min() >= CANVAS.margin
    assert (points <= [CANVAS.width - CANVAS.margin, CANVAS.height - CANVAS.margin]).all()


def test_points_at_one_place_are_moved_apart() -> None:
    points = fit_points(np.zeros((7, 2)), CANVAS, spacing=14)
    distances = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    assert distances[np.triu_indices(7, 1)].min() > 13
