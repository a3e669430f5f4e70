"""Checkpoints: whole, safe to read, and only for the training that they are of."""

import pickle
from typing import Any

import pytest
import torch

from lifelong_core.develop.training.optimisation.state import (
    Checkpoint,
    PhaseState,
    read_checkpoint,
    training_key,
    write_checkpoint,
)
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import EpochRecord


def epoch(number: int, loss: float) -> EpochRecord:
    return EpochRecord(
        phase="training",
        epoch=number,
        learning_rate=1e-3,
        training_loss=0.5,
        validation_loss=loss,
        validation_metric=0.5,
        seconds=1.0,
    )


def state(*losses: float) -> PhaseState:
    weights = {"layer": torch.rand(2, 3)}
    epochs = tuple(epoch(number, loss) for number, loss in enumerate(losses, 1))
    return PhaseState(
        epochs,
        weights,
        {"layer": torch.rand(2, 3)},
        {"state": {0: {"step": torch.tensor(3.0)}}},
        {"best": 0.1},
    )


def test_a_checkpoint_comes_back_as_it_was() -> None:
    given = Checkpoint("key", (epoch(1, 0.9),), 1, state(0.5, 0.4))
    found = read_checkpoint(write_checkpoint(given), "key")
    assert found is not None
    assert (found.key, found.earlier, found.phase, found.state.epochs) == (
        "key",
        given.earlier,
        1,
        given.state.epochs,
    )
    assert torch.equal(found.state.weights["layer"], given.state.weights["layer"])
    assert torch.equal(found.state.best_weights["layer"], given.state.best_weights["layer"])
    assert found.state.schedule == {"best": 0.1}


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("executed",)


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "pickle", "other"])
def test_a_damaged_one_or_that_of_another_training_is_none(
    damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write_checkpoint(Checkpoint("key", (), 0, state(0.5)))
    content = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "text": b"not a checkpoint",
        "pickle": pickle.dumps(Evil(), protocol=2),
        "other": whole,
    }[damage]
    assert read_checkpoint(content, "another key" if damage == "other" else "key") is None
    assert capsys.readouterr().out == ""


def test_the_key_depends_on_recipe_data_and_weights() -> None:
    keys = {
        training_key(Recipe(seed=seed), data, weights)
        for seed in (0, 1)
        for data in (["a"], ["b"], ["a", "b"])
        for weights in (None, "c")
    }
    assert len(keys) == 12
    assert training_key(Recipe(), ["a"], None) == training_key(Recipe(), ["a"], None)


def test_a_phase_is_over_after_its_epochs_or_without_improvement() -> None:
    assert state(0.5, 0.4, 0.4, 0.6).best_epoch == 2
    assert not state(0.5, 0.4, 0.6).is_over(epochs=9, patience=2)
    assert state(0.5, 0.4, 0.6, 0.41).is_over(epochs=9, patience=2)
    assert state(0.5, 0.4).is_over(epochs=2, patience=9)
