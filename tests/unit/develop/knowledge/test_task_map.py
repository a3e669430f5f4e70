import numpy as np
import pytest

from lifelong_core.develop.knowledge.task_map import draw_task_map
from lifelong_core.develop.knowledge.transfer_folder import read_transfer_folder
from lifelong_core.values.errors import InvalidInputError
from tests.tools import transfer_folder


def distances_of(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def planar_distances(tasks: int = 30, seed: int = 0) -> np.ndarray:
    return distances_of(np.random.default_rng(seed).normal(size=(tasks, 2)))


def test_a_planar_configuration_is_recovered() -> None:
    wanted = planar_distances()
    drawn = draw_task_map(wanted)
    assert drawn.stress < 1e-9
    np.testing.assert_allclose(distances_of(drawn.positions), wanted, atol=1e-8)
    np.testing.assert_allclose(drawn.positions.mean(axis=0), 0.0, atol=1e-12)
    assert drawn.positions[:, 0].var() > drawn.positions[:, 1].var()


def test_missing_distances_are_bridged() -> None:
    wanted = planar_distances()
    holes = np.where(np.random.default_rng(1).random(wanted.shape) < 0.4, np.nan, wanted)
    np.testing.assert_allclose(distances_of(draw_task_map(holes).positions), wanted, atol=1e-3)


def test_both_directions_are_averaged_and_the_diagonal_is_not_used() -> None:
    wanted = planar_distances()
    skewed = wanted + np.triu(np.full_like(wanted, 0.1), 1) - np.tril(np.full_like(wanted, 0.1), -1)
    np.fill_diagonal(skewed, np.nan)
    np.testing.assert_allclose(draw_task_map(skewed).positions, draw_task_map(wanted).positions, atol=1e-8)


def test_negative_distances_are_shifted_up() -> None:
    wanted = planar_distances()
    np.fill_diagonal(wanted, np.nan)
    shifted = draw_task_map(wanted - np.nanmin(wanted) - 1.0)
    np.testing.assert_allclose(
        shifted.positions, draw_task_map(wanted - np.nanmin(wanted)).positions, atol=1e-8
    )


def test_parts_without_a_known_distance_stand_apart() -> None:
    wanted = np.full((4, 4), np.nan)
    wanted[0, 1] = wanted[3, 2] = 1.0
    lengths = distances_of(draw_task_map(wanted).positions)
    assert np.isfinite(lengths).all()
    assert lengths[0, 2] > 0.5
    assert lengths[0, 3] > 0.5


@pytest.mark.parametrize("tasks", [0, 1, 2, 3])
def test_few_tasks_are_drawn(tasks: int) -> None:
    drawn = draw_task_map(np.ones((tasks, tasks)))
    assert drawn.positions.shape == (tasks, 2)
    assert drawn.stress == pytest.approx(0.0, abs=1e-9)


def test_equal_tasks_lie_on_one_point() -> None:
    assert not draw_task_map(np.zeros((3, 3))).positions.any()
    assert not draw_task_map(np.full((3, 3), np.nan)).positions.any()


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="square"):
        draw_task_map(np.zeros((2, 3)))


@pytest.mark.parametrize("method", range(8))
def test_published_distances_are_drawn_better_than_at_random(method: int) -> None:
    distances = read_transfer_folder(transfer_folder()).distances[method]
    drawn = draw_task_map(distances)
    assert drawn == draw_task_map(distances)
    assert drawn.stress < 0.35
