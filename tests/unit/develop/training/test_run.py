"""From a recipe and images to a model: learns, goes on after an interruption, and says how far it is."""

import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lifelong_core.develop.features.sources.entry import ImageSource
from lifelong_core.develop.training import phases, run
from lifelong_core.develop.training.data.prepared import PreparedImages, prepare_images
from lifelong_core.develop.training.export.exported_model import ExportedModel
from lifelong_core.develop.training.optimisation import trainer
from lifelong_core.develop.training.optimisation.classifier import create_classifier
from lifelong_core.develop.training.progress import TrainingProgress
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import Parity
from lifelong_core.develop.training.run import TrainingOutcome, run_training
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.training.optimisation.drawn import draw, recipe

PRETRAINING = {"scenario": "pretraining", "source": "corners"}
CO_TRAINING = {"scenario": "co_training", "source": "corners"}


@dataclass
class Heard:
    checkpoints: list[bytes] = field(default_factory=list)
    progress: list[TrainingProgress] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass
class Tasks:
    target: ImageSource
    source: ImageSource
    folder: Path
    heard: Heard = field(default_factory=Heard)

    def train(self, wanted: Recipe, **changes: Any) -> TrainingOutcome:
        self.heard = Heard()
        observers = {
            "on_checkpoint": self.heard.checkpoints.append,
            "on_progress": self.heard.progress.append,
            "log": self.heard.lines.append,
        }
        source = self.source if wanted.needs_source_data else None
        given = {"source": source, "work_folder": self.folder, "device": "cpu", **observers, **changes}
        return run_training("squares", wanted, self.target, **given)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Tasks:
    folder = tmp_path_factory.mktemp("training")
    return Tasks(
        draw(folder / "target", {"left": 60, "right": 60}),
        draw(folder / "source", {"a": 20, "b": 20, "c": 20}, seed=1),
        folder / "work",
    )


class Graph:
    """Stands in for the graph where a test is not about it: an export takes seconds."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return self._module(torch.from_numpy(inputs)).numpy()


@pytest.fixture
def unexported(monkeypatch: pytest.MonkeyPatch) -> None:
    parity = Parity(images=1, largest_difference=0, largest_difference_through_service=0, tolerance=1)

    def export(module: torch.nn.Module, *_: object) -> ExportedModel:
        return ExportedModel(b"", Graph(module), parity)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "export_model", export)
    # A checkpoint after every epoch.
    monkeypatch.setattr("lifelong_core.develop.training.phases._SAVING_SHARE", 1e9)


def test_a_small_task_is_learnt_and_its_graph_gives_the_logits_of_the_model(tasks: Tasks) -> None:
    outcome = tasks.train(recipe(epochs=15, learning_rate=1e-2))
    result = outcome.result
    for split, logits in (("calibration", outcome.calibration), ("test", outcome.test)):
        assert len(logits.labels) == len(logits.logits) == len(logits.names) == result.splits[split].images  # type: ignore[index]
        assert np.mean(logits.logits.argmax(1) == logits.labels) > 0.9
        assert [name.split("/")[0] for name in logits.names] == [
            result.class_names[label] for label in logits.labels
        ]
    assert not set(outcome.calibration.names) & set(outcome.test.names)
    assert 0 < result.parity.largest_difference < result.parity.tolerance
    assert 0 < result.parity.largest_difference_through_service < result.parity.tolerance
    assert result.weights != result.initial_weights
    assert set(result.seconds) == {"reading", "training", "exporting", "evaluating"}
    assert len(outcome.onnx) > 100_000


def test_the_weights_of_the_best_epoch_are_kept(tasks: Tasks, unexported: None) -> None:
    result = tasks.train(recipe(epochs=6, learning_rate=3e-2, batch_size=12)).result
    losses = [epoch.validation_loss for epoch in result.epochs]
    assert losses[result.best_epoch - 1] == min(losses)
    assert result.best_epoch < 6
    shorter = tasks.train(recipe(epochs=result.best_epoch, learning_rate=3e-2, batch_size=12)).result
    assert shorter.weights == result.weights


def test_training_stops_without_improvement_and_lowers_the_rate_before(
    tasks: Tasks, unexported: None
) -> None:
    wanted = recipe(epochs=30, learning_rate=3e-2, patience=4, plateau_patience=1, plateau_factor=0.5)
    epochs = tasks.train(wanted).result.epochs
    losses = [epoch.validation_loss for epoch in epochs]
    assert len(epochs) < 30
    assert len(epochs) - 1 - int(np.argmin(losses)) == 4
    assert epochs[-1].learning_rate < 3e-2


def losses(outcome: TrainingOutcome) -> list[tuple[float, float]]:
    return [(epoch.training_loss, epoch.validation_loss) for epoch in outcome.result.epochs]


@pytest.mark.parametrize(
    "changes", [{}, PRETRAINING, CO_TRAINING], ids=["alone", "pretraining", "co_training"]
)
def test_an_interrupted_training_gives_the_same_model(
    tasks: Tasks, unexported: None, changes: dict[str, str]
) -> None:
    wanted = recipe(epochs=2, **changes)
    whole = tasks.train(wanted)
    checkpoints = tasks.heard.checkpoints
    assert len(checkpoints) == len(whole.result.epochs) == (4 if changes == PRETRAINING else 2)
    for number, checkpoint in enumerate(checkpoints):
        resumed = tasks.train(wanted, checkpoint=checkpoint)
        assert resumed.result.weights == whole.result.weights
        assert losses(resumed) == losses(whole)
        assert resumed.result.epochs[: number + 1] == whole.result.epochs[: number + 1]
        assert len(tasks.heard.checkpoints) == len(checkpoints) - number - 1
        assert any(line.startswith("goes on after epoch") for line in tasks.heard.lines)
        np.testing.assert_array_equal(resumed.test.logits, whole.test.logits)


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from lifelong_core.develop.features.sources.opening import open_images
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.run import run_training

folder, when = Path(sys.argv[1]), sys.argv[2]
kept = folder / "checkpoint"

def kill(seconds=0.0):
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)

def keep(content):
    if when == "before":
        kill()
    (folder / "draft").write_bytes(content)
    (folder / "draft").replace(kept)
    if when == "after":
        kill()
    if when == "in the next epoch":
        threading.Thread(target=kill, args=(0.05,)).start()

run_training(
    "squares",
    Recipe.from_json((folder / "recipe").read_text()),
    open_images(folder.parent / "target"),
    work_folder=folder,
    device="cpu",
    checkpoint=kept.read_bytes() if kept.exists() else None,
    on_checkpoint=keep,
)
"""
"""A training that ends by SIGKILL: before or after it stores its first checkpoint, or in the epoch after that."""


def test_a_training_that_is_killed_three_times_gives_the_same_model(tasks: Tasks) -> None:
    wanted = recipe(epochs=6)
    whole = tasks.train(wanted)
    folder = tasks.folder.parent / "killed"
    folder.mkdir()
    (folder / "recipe").write_text(wanted.to_json())
    for when in ("after", "before", "in the next epoch"):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), when], check=False, timeout=240)
        assert killed.returncode == -signal.SIGKILL
    last = tasks.train(wanted, checkpoint=(folder / "checkpoint").read_bytes(), work_folder=folder)
    assert "goes on after epoch 2 of the training" in tasks.heard.lines
    assert last.result.weights == whole.result.weights
    assert losses(last) == losses(whole)
    np.testing.assert_array_equal(last.test.logits, whole.test.logits)
    assert last.onnx == whole.onnx


def test_an_interrupted_training_drops_out_the_same(
    tasks: Tasks, unexported: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_dropout(*given: Any, **named: Any) -> torch.nn.Module:
        return torch.nn.Sequential(create_classifier(*given, **named), torch.nn.Dropout(0.3))

    monkeypatch.setattr(phases, "create_classifier", with_dropout)
    whole = tasks.train(recipe(epochs=2))
    resumed = tasks.train(recipe(epochs=2), checkpoint=tasks.heard.checkpoints[0])
    assert losses(resumed) == losses(whole)


def test_a_checkpoint_of_another_training_is_not_used(tasks: Tasks, unexported: None) -> None:
    tasks.train(recipe(epochs=1, seed=3))
    checkpoint = tasks.heard.checkpoints[0]
    fresh = tasks.train(recipe(epochs=1)).result.weights
    assert tasks.train(recipe(epochs=1), checkpoint=checkpoint).result.weights == fresh
    assert any("of another training" in line for line in tasks.heard.lines)


def test_a_checkpoint_of_other_splits_of_the_same_images_is_not_used(
    tasks: Tasks, unexported: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.train(recipe(epochs=1))
    checkpoint = tasks.heard.checkpoints[0]

    def moved(*given: Any, **named: Any) -> PreparedImages:
        images = prepare_images(*given, **named)
        splits = images.splits
        return replace(images, splits={**splits, "training": splits["test"], "test": splits["training"]})

    monkeypatch.setattr(run, "prepare_images", moved)
    tasks.train(recipe(epochs=1), checkpoint=checkpoint)
    assert any("of another training" in line for line in tasks.heard.lines)


def test_a_source_that_holds_test_images_of_the_target_is_a_warning(tasks: Tasks, unexported: None) -> None:
    wanted = recipe(epochs=1, **PRETRAINING)
    assert tasks.train(wanted).result.warnings == ()
    (warning,) = tasks.train(wanted, source=tasks.target).result.warnings
    assert "identical to validation, calibration or test images of the target" in warning
    assert f"warning: {warning}" in tasks.heard.lines


def test_equal_seeds_give_equal_models_and_others_do_not(tasks: Tasks, unexported: None) -> None:
    given = ((0, None), (0, None), (1, 3e-3))
    weights = [
        tasks.train(recipe(epochs=1, seed=seed, learning_rate=rate)).result.weights for seed, rate in given
    ]
    assert weights[0] == weights[1] != weights[2]


def test_each_scenario_changes_the_model(tasks: Tasks, unexported: None) -> None:
    weights = {
        tasks.train(recipe(epochs=1, **changes)).result.weights for changes in ({}, PRETRAINING, CO_TRAINING)
    }
    assert len(weights) == 3


def test_progress_never_goes_back_and_names_the_phases_in_order(tasks: Tasks, unexported: None) -> None:
    tasks.train(recipe(epochs=2, learning_rate=None, **PRETRAINING))
    heard = tasks.heard.progress
    fractions = [progress.fraction for progress in heard]
    assert fractions == sorted(fractions)
    assert fractions[-1] < 1
    phases = [progress.phase for progress in heard]
    order = [
        "reading",
        "learning_rate",
        "pretraining",
        "learning_rate",
        "training",
        "exporting",
        "evaluating",
    ]
    assert [phase for at, phase in enumerate(phases) if at == 0 or phases[at - 1] != phase] == order
    last = next(progress for progress in reversed(heard) if progress.phase == "training")
    assert (last.epoch, last.epochs) == (2, 2)
    assert None not in (
        last.training_loss,
        last.validation_loss,
        last.validation_metric,
        last.images_per_second,
    )


def test_a_loss_that_is_not_finite_says_what_to_do(
    tasks: Tasks, unexported: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = trainer.batch_loss
    monkeypatch.setattr(trainer, "batch_loss", lambda *given: right(*given) * float("nan"))
    with pytest.raises(InvalidInputError, match="not finite in epoch 1") as refused:
        tasks.train(recipe(epochs=1))
    assert "0.003" in str(refused.value.hint)


def test_images_of_the_source_are_given_exactly_where_the_recipe_uses_them(tasks: Tasks) -> None:
    with pytest.raises(InvalidInputError, match="trains on images of corners") as missing:
        tasks.train(recipe(**PRETRAINING), source=None)
    assert "are transferred without images" in str(missing.value.hint)
    with pytest.raises(InvalidInputError, match="no other task"):
        tasks.train(recipe(), source=tasks.source)


def test_a_prevalence_of_other_classes_is_refused(tasks: Tasks) -> None:
    wanted = recipe(sampling="prevalence", target_prevalence=(0.2, 0.3, 0.5))
    with pytest.raises(InvalidInputError, match="has 3 classes, the images have 2"):
        tasks.train(wanted)


def test_an_unknown_device_is_refused(tasks: Tasks) -> None:
    with pytest.raises(InvalidInputError, match="cannot compute on cuda:7"):
        tasks.train(recipe(), device="cuda:7")
