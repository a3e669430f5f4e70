"""The benchmark of retraining: its tasks share no image, and its knowledge base has never met the target."""

import numpy as np
import pytest

from benchmarks.retraining_loop import choices, difference, gains_of, most_promising, summary
from benchmarks.retraining_tasks import SPLITS, TASKS, digits_of, task_images
from benchmarks.retraining_transfers import ARCHITECTURES, SEEDS, Cell, all_cells
from lifelong_core.develop.knowledge.entry import SCENARIOS


@pytest.fixture(scope="module")
def measured() -> dict[Cell, float]:
    """Random outcomes; the third task is the best source in every scenario that trains on images."""
    rng = np.random.default_rng(0)
    return {
        cell: float(np.clip(0.6 + 0.02 * rng.normal() + 0.1 * (cell.source == TASKS[2]), 0, 1))
        for cell in all_cells()
    }


def test_no_image_is_in_two_tasks_or_splits() -> None:
    # Plain and rotated images of one digit would be equal otherwise.
    seen: dict[bytes, tuple[str, str]] = {}
    for task in ("digits-0-plain", "digits-5-plain", "digits-2-rotated", "digits-7-rotated"):
        for (split, digit), images in task_images(task, 0).items():
            assert len(images) == dict(SPLITS)[split]
            assert digit in digits_of(task)
            for image in images:
                plain = np.rot90(image, -1) if "rotated" in task else image
                assert seen.setdefault(plain.tobytes(), (task, split)) == (task, split)
    other = task_images(TASKS[0], 1)["training", digits_of(TASKS[0])[0]]
    assert not np.array_equal(other, task_images(TASKS[0], 0)["training", digits_of(TASKS[0])[0]])


def test_gains_are_means_over_seeds_in_points(measured: dict[Cell, float]) -> None:
    target, source = TASKS[0], TASKS[1]
    found = gains_of(measured, "pretraining", target)
    assert set(found) == set(TASKS) - {target}
    expected = [
        measured[Cell("pretraining", source, target, seed)] - measured[Cell(None, None, target, seed)]
        for seed in range(SEEDS)
    ]
    assert found[source] == pytest.approx(100 * np.mean(expected))


def test_a_transferred_architecture_is_the_best_of_its_source(measured: dict[Cell, float]) -> None:
    best = dict(measured)
    for seed in range(SEEDS):
        best[Cell(None, None, TASKS[1], seed, ARCHITECTURES[3])] = 0.99
        best[Cell(None, None, TASKS[0], seed, ARCHITECTURES[3])] = 0.7
        best[Cell(None, None, TASKS[0], seed)] = 0.6
    assert gains_of(best, "architecture", TASKS[0])[TASKS[1]] == pytest.approx(10)


def test_suggestions_do_not_know_the_target(measured: dict[Cell, float]) -> None:
    target = TASKS[0]
    found = choices(measured, targets=[target], trees=10)
    assert [one.scenario for one in found] == list(SCENARIOS)
    rng = np.random.default_rng(1)
    hidden = {
        cell: float(rng.uniform()) if target in (cell.target, cell.source) else value
        for cell, value in measured.items()
    }
    others = choices(hidden, targets=[target], trees=10)
    assert [(one.source, one.expected) for one in others] == [(one.source, one.expected) for one in found]
    assert [one.suggested for one in others] != [one.suggested for one in found]
    pretraining = next(one for one in found if one.scenario == "pretraining")
    assert pretraining.source == TASKS[2]
    assert pretraining.suggested == pretraining.best > pretraining.random
    assert most_promising(found)[0].expected == max(one.expected for one in found)
    assert summary(found, "best")["mean"] == pytest.approx(np.mean([one.best for one in found]))
    more = difference(found, "best", "random")["mean"]
    assert more == pytest.approx(np.mean([one.best - one.random for one in found]))
