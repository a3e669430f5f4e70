"""The marks and labels of a task map."""

import numpy as np

from lifelong_core.develop.knowledge.task_map import rank_distances
from lifelong_service.console.knowledge.task_map import STYLES, MappedTask, draw_map

WIDE, SMALL = STYLES


def tasks_of(count: int, *, name: str = "endoscopy_quality_of_views") -> list[MappedTask]:
    sources = [
        MappedTask(f"{name}_{n}", "recommended" if n == 1 else "other", n, "", "") for n in range(1, count)
    ]
    return [MappedTask("target", "target", None, "", ""), *sources]


def test_seventy_one_tasks_have_their_names_on_a_screen_and_their_numbers_on_a_telephone() -> None:
    tasks = tasks_of(71)
    positions = np.random.default_rng(0).normal(size=(71, 2))
    wide, small = (draw_map(tasks, positions, style) for style in STYLES)
    for drawing in (wide, small):
        assert len(drawing.marks) == 71
        assert drawing.marks[-1].task.kind == "target"  # nothing covers it
        assert all(mark.text_x is not None for mark in drawing.marks)
    assert {mark.label for mark in wide.marks} == {task.name for task in tasks}
    assert {mark.label for mark in small.marks} == {"target", *map(str, range(1, 71))}


def test_a_long_name_is_shortened() -> None:
    tasks = [MappedTask("a" * 64, "target", None, "", "")]
    (mark,) = draw_map(tasks, np.zeros((1, 2)), WIDE).marks
    assert mark.label == "a" * 39 + "…"
    assert (mark.x, mark.y) == (WIDE.canvas.width / 2, WIDE.canvas.height / 2)


def test_a_label_far_from_its_mark_is_joined_to_it() -> None:
    crowded = draw_map(tasks_of(40), np.zeros((40, 2)), WIDE)
    alone = draw_map(tasks_of(2), np.array([[0.0, 0.0], [1.0, 1.0]]), WIDE)
    assert any(mark.leader for mark in crowded.marks)
    assert not any(mark.leader for mark in alone.marks)


def test_distances_become_ranks() -> None:
    distances = np.array([[9, 0.5, np.nan], [7.0, 9, 0.5], [100.0, np.inf, 9]])
    ranks = rank_distances(distances)
    assert np.array_equal(ranks, [[0, 1, np.nan], [2, 0, 1], [3, np.nan, 0]], equal_nan=True)
