from pathlib import Path

import numpy as np
import pytest

from lifelong_core.develop.knowledge.entry import KnowledgeEntry
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.transfer_folder import (
    read_knowledge_folder,
    read_splits,
    read_transfer_folder,
)
from lifelong_core.values.errors import InvalidInputError
from tests.tools import transfer_folder
from tests.unit.develop.knowledge.examples import same


def write_folder(folder: Path, rows: str = "a,2,10\nb,3,20\n", **arrays: object) -> Path:
    defaults = {
        "tasks": ["a", "b"],
        "scenarios": ["pretrain"],
        "measures": ["BA"],
        "outcomes": np.arange(4.0).reshape(1, 1, 1, 2, 2) / 10,
    }
    kept = {name: np.asarray(value) for name, value in (defaults | arrays).items() if value is not None}
    np.savez(folder / "transfer_test.npz", **kept)
    (folder / "tasks_test.csv").write_text("task,num_classes,num_samples\n" + rows)
    return folder


def test_published_outcomes_are_read_with_source_before_target() -> None:
    outcomes = read_transfer_folder(transfer_folder())
    assert outcomes.scenarios == ("architecture", "pretraining", "augmentation", "co_training")
    assert outcomes.outcomes.shape == (4, 2, 3, 28, 28)
    assert len(outcomes.methods) == 8
    # none was measured in pretraining for targets with 40 classes or more
    many = np.asarray([card.classes >= 40 for card in outcomes.cards])
    assert np.isnan(outcomes.outcomes[1, :, :, :, many]).all()
    assert np.isfinite(outcomes.outcomes[1, 0, 0][many][:, ~many]).any()


def test_distances_of_full_targets_differ_only_where_the_target_was_shrunk() -> None:
    shrunk = read_transfer_folder(transfer_folder())
    full = read_transfer_folder(transfer_folder(), targets="full")
    changed = (np.nan_to_num(shrunk.distances) != full.distances).any(axis=(0, 1))
    samples = [
        entry.trainings[0].training_samples
        for entry in read_knowledge_folder(transfer_folder()).entries.values()
    ]
    assert changed.tolist() == [number == 800 for number in samples]
    assert full.scenarios == ("architecture", "co_training")


def test_a_knowledge_base_gives_the_published_outcomes_back() -> None:
    outcomes = read_transfer_folder(transfer_folder())
    knowledge = read_knowledge_folder(transfer_folder())
    written = [entry.to_json() for entry in knowledge.entries.values()]
    again = KnowledgeBase.from_entries(KnowledgeEntry.from_json(text) for text in written)
    assert again.outcomes() == outcomes
    assert KnowledgeBase.from_outcomes(outcomes).outcomes() == outcomes


def test_full_targets_are_trainings_with_all_images() -> None:
    full = read_transfer_folder(transfer_folder(), targets="full")
    entry = read_knowledge_folder(transfer_folder()).entry("svhn")
    trainings = [training for training in entry.trainings if training.training_samples is None]
    target = full.tasks.index("svhn")
    assert trainings[0].performance["BA"] == tuple(full.baseline[0, :, target])
    assert len(trainings) == 1 + np.isfinite(full.outcomes[:, 0, 0, :, target]).sum()


def test_splits_are_read_by_task() -> None:
    assert set(read_splits(transfer_folder()).values()) == {"development"}


def test_only_tasks_and_outcomes_are_needed(tmp_path: Path) -> None:
    outcomes = read_transfer_folder(write_folder(tmp_path))
    assert outcomes.methods == ()
    assert outcomes.baseline.shape == (1, 1, 2)
    assert np.isnan(outcomes.baseline).all()
    assert outcomes.outcomes[0, 0, 0, 0, 1] == pytest.approx(0.1)
    assert read_knowledge_folder(tmp_path).outcomes().outcomes[0, 0, 0, 1, 0] == pytest.approx(0.2)
    assert read_splits(tmp_path) == {}


def test_targets_may_be_fewer_than_sources(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path, targets=["b"], outcomes=np.full((1, 1, 2, 2, 1), 0.5), baseline=np.ones((1, 2, 1))
    )
    outcomes = read_transfer_folder(folder)
    assert same(outcomes.outcomes[0, 0, 0], [[np.nan, 0.5], [np.nan, 0.5]])
    assert same(outcomes.baseline[0, 0], [np.nan, 1.0])


def test_files_of_one_folder_are_merged(tmp_path: Path) -> None:
    write_folder(
        tmp_path, rows="a,2,10\nb,3,20\nc,4,30\n", distances=[[[0.0, 1], [np.inf, 0]]], methods=["FID"]
    )
    np.savez(
        tmp_path / "transfer_zz.npz",
        tasks=["b", "c"],
        scenarios=["arch", "pretrain"],
        measures=["AUROC", "BA"],
        outcomes=np.full((2, 2, 2, 2, 2), 0.9),
    )
    outcomes = read_transfer_folder(tmp_path)
    assert outcomes.tasks == ("a", "b", "c")
    assert outcomes.scenarios == ("architecture", "pretraining")
    assert outcomes.measures == ("BA", "AUROC")
    assert same(outcomes.outcomes[1, 0, 0], [[0.0, 0.1, np.nan], [0.2, 0.3, 0.9], [np.nan, 0.9, 0.9]])
    assert same(outcomes.outcomes[0, 0, 1], [[np.nan] * 3, [np.nan, 0.9, 0.9], [np.nan, 0.9, 0.9]])
    assert same(outcomes.distances[0], [[0, 1, np.nan], [np.nan, 0, np.nan], [np.nan] * 3])


def test_numbers_without_a_meaning_count_as_missing(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "tasks_test.csv").write_text(
        "task,num_classes,num_samples,imbalance_ratio,intrinsic_dim,max_resolution,min_resolution\n"
        "a,2.0,10.0,inf,0,1024.5,nan\n"
        "b,3,20,0.5,7,,-1\n"
    )
    first, second = read_transfer_folder(tmp_path).cards
    assert (first.classes, first.samples, first.imbalance) == (2, 10, 1.0)
    assert (first.intrinsic_dimension, first.largest_pixels, first.smallest_pixels) == (None, 1024, None)
    assert (second.imbalance, second.intrinsic_dimension, second.smallest_pixels) == (1.0, 7.0, None)


def test_names_become_legal(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, tasks=["A task", "b"], rows="A task,2,10\nb,3,20\n")
    assert read_transfer_folder(folder).tasks == ("a-task", "b")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rows": "a,2,10\n"}, "tasks_*.csv"),
        ({"rows": "a,2,10\nb,,20\n"}, "tasks_*.csv"),
        ({"rows": "a,2,10\nb,three,20\n"}, "num_classes"),
        ({"rows": "a,2,10\nb,1,20\n"}, "classes"),
        ({"tasks": ["a", "A"]}, "tasks"),
        ({"scenarios": ["other"]}, "scenarios"),
        ({"outcomes": np.zeros((1, 1, 1, 2, 3))}, "outcomes"),
        ({"outcomes": None}, "outcomes"),
        ({"baseline": np.zeros((1, 2, 2))}, "outcomes"),
        ({"distances": [[["x"]]]}, "transfer_test.npz"),
    ],
)
def test_a_wrong_folder_is_refused_with_the_field(
    tmp_path: Path, change: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_transfer_folder(write_folder(tmp_path, **change))  # type: ignore[arg-type]
    assert caught.value.field == field


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no file"):
        read_transfer_folder(tmp_path)
