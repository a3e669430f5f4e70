"""From a recipe and labelled images to a trained, exported and checked classifier."""
# pyright: reportUnknownMemberType=false

import importlib.metadata
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.features.backbone import limit_threads
from lifelong_core.develop.features.sources.entry import ImageSource
from lifelong_core.develop.training.data.prepared import PreparedImages, prepare_images
from lifelong_core.develop.training.export.exported_model import export_model, training_preprocessing
from lifelong_core.develop.training.export.onnx_classifier import OnnxClassifier
from lifelong_core.develop.training.from_suggestion import check_source_data
from lifelong_core.develop.training.optimisation.classifier import (
    compute_on,
    describe_device,
    digest_of,
    read_initial_weights,
    training_device,
)
from lifelong_core.develop.training.optimisation.state import Checkpoint, read_checkpoint
from lifelong_core.develop.training.phases import Training, report_reading, train
from lifelong_core.develop.training.plan import SOURCE_SHARES
from lifelong_core.develop.training.progress import ProgressReport, TrainingProgress
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import EpochRecord, Parity, TrainingResult
from lifelong_core.values.preprocessing import Preprocessing

_VERSIONS = ("torch", "timm", "torchvision", "onnxruntime", "lifelong")


@dataclass(frozen=True, eq=False)
class SplitLogits:
    """Logits of the exported graph on one split.

    Attributes:
        names: n, of the images within their source.
        logits: (n, C).
        labels: (n,).
        groups: n keys; an image without one is a group of its own. None: no image names one.
    """

    names: tuple[str, ...]
    logits: NDArray[np.float32]
    labels: NDArray[np.int64]
    groups: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """A trained classifier.

    Attributes:
        result: how it came about.
        onnx: its graph.
        calibration: logits that neither training nor the choice of the best epoch has seen.
        test: the same, for its evaluation.
    """

    result: TrainingResult
    onnx: bytes
    calibration: SplitLogits
    test: SplitLogits


def run_training(
    task: str,
    recipe: Recipe,
    images: ImageSource,
    *,
    work_folder: Path,
    class_names: Sequence[str] | None = None,
    source: ImageSource | None = None,
    device: str = "auto",
    weights_folder: Path | None = None,
    checkpoint: bytes | None = None,
    on_checkpoint: Callable[[bytes], None] = lambda _: None,
    on_progress: Callable[[TrainingProgress], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
    check_space: Callable[[int], None] = lambda _: None,
) -> TrainingOutcome:
    """Train a classifier by a recipe, export it as a graph, and check the graph.

    Equal recipe, images and weights give an equal model on a CPU, also when the training was interrupted and goes on
    from a checkpoint.

    Args:
        task: name of the target task.
        recipe: how to train.
        images: of the target task.
        work_folder: for decoded images; a later attempt uses them again.
        class_names: in the order of the logits; None: those of the images, sorted.
        source: images of the source task, where the recipe trains on them.
        device: auto, cpu, cuda or cuda:N.
        weights_folder: of files with pretrained weights; see `Recipe.initial_weights`.
        checkpoint: what `on_checkpoint` got last; that of another recipe or other images is not used.
        on_checkpoint: gets what a later call needs to go on from here.
        on_progress: gets the progress, about once a second.
        log: gets one line for each step.
        check_space: called with the bytes that decoded images take, before they are written; raises to refuse that.

    Raises:
        InvalidInputError: recipe, images and device do not fit, the loss is not finite, or the graph differs from the
            model; the message says what to do.
        ConfigurationError: there are no pretrained weights here, and the hub cannot be reached.
    """
    check_source_data(recipe, None, is_given=source is not None)
    seconds: dict[str, float] = {}
    chosen = training_device(device)
    report = ProgressReport(describe_device(chosen), on_progress)
    preprocessing = training_preprocessing(recipe)
    computing = compute_on(chosen, preprocessing, mixed_precision=recipe.optimisation.mixed_precision)
    with limit_threads(None):
        with _timed(seconds, "reading"):
            reader = _Reader(recipe, preprocessing, work_folder, report, log, check_space)
            target = reader.target(images, class_names)
            other = None if source is None else reader.source(source, target)
            weights = read_initial_weights(recipe, weights_folder)
        training = Training(recipe, target, other, weights, computing, report, log)
        module, epochs = train(training, _checkpoint_of(training, checkpoint, log), on_checkpoint)
        report.begin("exporting")
        with _timed(seconds, "exporting"):
            exported = export_model(module, images, target)
        log(
            f"exported the graph: {len(exported.onnx) / 1e6:.1f} MB, its logits differ by at most "
            f"{exported.parity.largest_difference:.1g} from the model's"
        )
        report.begin("evaluating")
        with _timed(seconds, "evaluating"):
            calibration = _logits(exported.classifier, target, target.splits["calibration"])
            test = _logits(exported.classifier, target, target.splits["test"])
    for epoch in epochs:
        seconds[epoch.phase] = seconds.get(epoch.phase, 0.0) + epoch.seconds
    result = _result(
        task, training, epochs, weights=digest_of(module), parity=exported.parity, seconds=seconds
    )
    return TrainingOutcome(result, exported.onnx, calibration, test)


def _result(
    task: str,
    training: Training,
    epochs: tuple[EpochRecord, ...],
    *,
    weights: str,
    parity: Parity,
    seconds: dict[str, float],
) -> TrainingResult:
    target, source, initial = training.target, training.source, training.weights
    return TrainingResult(
        task=task,
        class_names=target.class_names,
        recipe=training.recipe,
        preprocessing=target.preprocessing,
        weights=weights,
        initial_weights=None if initial is None else initial.digest,
        splits=target.facts,
        data=target.digest,
        epochs=epochs,
        best_epoch=_best_epoch(epochs),
        parity=parity,
        device=describe_device(training.computing.device),
        versions={name: importlib.metadata.version(name) for name in _VERSIONS},
        seconds=seconds,
        warnings=(
            *target.warnings,
            *(() if source is None else source.warnings),
            *_doubts(training.recipe, epochs),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads the images of both tasks."""

    recipe: Recipe
    preprocessing: Preprocessing
    work_folder: Path
    report: ProgressReport
    log: Callable[[str], None]
    check_space: Callable[[int], None]

    def target(self, images: ImageSource, class_names: Sequence[str] | None) -> PreparedImages:
        """Those of the target task, in four splits."""
        prepared = prepare_images(
            images,
            self.preprocessing,
            shares=self.recipe.shares.by_split(),
            seed=self.recipe.seed,
            folder=self.work_folder / "target",
            class_names=class_names,
            on_image=partial(report_reading, self.report),
            check_space=self.check_space,
        )
        self._say("images", prepared)
        return prepared

    def source(self, images: ImageSource, target: PreparedImages) -> PreparedImages:
        """Those of the source task, to train on and to validate."""
        prepared = prepare_images(
            images,
            self.preprocessing,
            shares=SOURCE_SHARES,
            seed=self.recipe.seed,
            folder=self.work_folder / "source",
            on_image=partial(report_reading, self.report),
            check_space=self.check_space,
        )
        overlap = target.overlap(prepared)
        if overlap is not None:
            prepared = replace(prepared, warnings=(*prepared.warnings, overlap))
        self._say(f"images of {self.recipe.source}", prepared)
        return prepared

    def _say(self, what: str, prepared: PreparedImages) -> None:
        sizes = ", ".join(f"{len(positions)} {split}" for split, positions in prepared.splits.items())
        self.log(f"read {len(prepared.names)} {what} of {len(prepared.class_names)} classes: {sizes}")
        for warning in prepared.warnings:
            self.log(f"warning: {warning}")


def _checkpoint_of(
    training: Training, content: bytes | None, log: Callable[[str], None]
) -> Checkpoint | None:
    """The checkpoint to go on from; None: there is none of this training."""
    if content is None:
        return None
    found = read_checkpoint(content, training.key)
    if found is None:
        log("the checkpoint is damaged or of another training: beginning anew")
    return found


def _logits(classifier: OnnxClassifier, images: PreparedImages, positions: NDArray[np.int64]) -> SplitLogits:
    """Logits of the graph."""
    logits = np.concatenate([classifier.logits(inputs) for inputs in images.batches(positions)])
    chosen: list[int] = positions.tolist()
    names = tuple(images.names[at] for at in chosen)
    groups = None
    if images.groups is not None:
        groups = tuple(images.groups[at] or f"image {images.names[at]}" for at in chosen)
    return SplitLogits(names, logits, images.labels[positions], groups)


def _best_epoch(epochs: Sequence[EpochRecord]) -> int:
    trained = [epoch for epoch in epochs if epoch.phase == "training"]
    return min(trained, key=lambda epoch: epoch.validation_loss).epoch


def _doubts(recipe: Recipe, epochs: Sequence[EpochRecord]) -> tuple[str, ...]:
    """Sentences on what may be wrong with the training."""
    last = epochs[-1].epoch
    if last == recipe.optimisation.epochs and _best_epoch(epochs) == last and last > 1:
        return ("the validation loss still fell in the last epoch: more epochs may give a better model",)
    return ()


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Generator[None]:
    started = time.monotonic()
    yield
    seconds[name] = time.monotonic() - started
