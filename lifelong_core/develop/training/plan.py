"""The plan of a training before it starts: its steps, duration and needs."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.develop.training.progress import Phase
from lifelong_core.develop.training.recipe import Recipe, SplitName
from lifelong_core.values.documents import Frozen, FrozenDocument

Basis: TypeAlias = Literal["measured", "stated", "guessed"]

USUAL_EDGE = 224
"""Edge of the input of most timm models in pixels, where the recipe leaves it to timm's data config."""
GUESSED_SPEED = {"cpu": 20.0, "gpu": 500.0}
"""Images per second in training, of a ResNet-34 at 224 pixels; a guess."""
RIGHT_TO: dict[Basis, float] = {"measured": 1.5, "stated": 2.0, "guessed": 10.0}
"""Factor between the estimated and the true duration, by what the speed is known from."""
STARTING_SECONDS = 60.0
"""All but the epochs: libraries, reading, export, evaluation, report, comparison and fingerprint; a guess."""
_STARTING_FACTOR = 5.0
"""By which that may be wrong."""
_REPEATED_FACTOR = 1.5
"""By which the next job may lie beyond the finished ones."""
HELD_OUT: tuple[SplitName, ...] = ("calibration", "test")
SOURCE_SHARES: Mapping[SplitName, float] = MappingProxyType({"training": 0.9, "validation": 0.1})
"""Of the images of a source task, which needs neither calibration nor test."""
_EVALUATION = 0.35
"""Seconds for an image without a backward pass, relative to one with it."""
_MARGIN = 1.3
"""Decoded images are kept larger than the input, so that random crops have room: pixels relative to the input's."""
_PROCESS_BYTES = 1_500_000_000
"""Python, torch and a network of usual size, with gradients and the state of the optimiser."""
_ACTIVATIONS = 160
"""Bytes of activations for each value of an input image, a ResNet's."""
_FILES_BYTES = 500_000_000
"""Checkpoints and the exported graph of a network of usual size."""


@dataclass(frozen=True)
class Speed:
    """How fast this architecture trains on this device."""

    images_per_second: float
    basis: Basis
    source: str = ""
    """where the number is from, such as a model that was trained here"""


class PlannedPhase(Frozen):
    """One phase of a training."""

    phase: Phase
    images: int | None = Field(ge=0)
    """training images of an epoch; None: not known"""
    epochs: int | None = Field(default=None, ge=1)
    """largest number; None: the phase has none"""


class Duration(Frozen):
    """Estimated duration, if no epoch is saved by early stopping."""

    seconds: float = Field(ge=0)
    low: float = Field(ge=0)
    high: float = Field(ge=0)
    """the true duration is probably between these"""
    images_per_second: float = Field(gt=0)
    basis: Basis
    """measured in an earlier training, stated by the asker, or guessed"""
    explanation: str


class TrainingPlan(FrozenDocument):
    """What a training would do."""

    task: str
    recipe: Recipe
    phases: tuple[PlannedPhase, ...]
    splits: dict[SplitName, int] | None
    """about so many images each; None: their number is not known, or the data name the splits"""
    source_splits: dict[SplitName, int] | None
    """of the source task; None: none is trained on, or not known"""
    duration: Duration | None
    """None: the number of images is not known"""
    device: str
    memory_bytes: int
    """a rough upper estimate"""
    disk_bytes: int | None
    """of the folder of the training while it lasts; None: the number of images is not known"""
    missing: tuple[str, ...]
    """what must be there before it can start, as sentences"""
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """Known facts of the images, and of the machine that would train.

    Attributes:
        images: of the task; None: not known.
        source_images: of the source task, where the recipe trains on them; None: not known.
        classes: of the task.
        device: of the training: auto, cpu or cuda:N.
        speed: None: not known.
        other_seconds: of finished trainings here: what they took beside their epochs.
        has_weights_file: whether the initial weights lie in the folder of the settings; None: not looked at.
        memory_bytes: limit of a job; None: there is none.
        free_disk_bytes: that a training may use; None: not known.
        missing: sentences of the caller on what must be there.
        warnings: sentences of the caller.
    """

    images: int | None
    classes: int
    source_images: int | None = None
    device: str = "auto"
    speed: Speed | None = None
    other_seconds: tuple[float, ...] = ()
    has_weights_file: bool | None = None
    memory_bytes: int | None = None
    free_disk_bytes: int | None = None
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def plan_training(task: str, recipe: Recipe, known: Circumstances) -> TrainingPlan:
    """What a training by this recipe would do.

    Nothing of the data is read, so the splits are those that the shares ask for; groups move them a little.

    Args:
        task: name of the task.
        recipe: how to train.
        known: what is known of images, device and limits.
    """
    splits = _split(recipe.shares.by_split(), known.images)
    source_splits = _split(SOURCE_SHARES, known.source_images) if recipe.needs_source_data else None
    memory, disk = _memory(recipe), _disk(recipe, known)
    return TrainingPlan(
        task=task,
        recipe=recipe,
        phases=_phases(recipe, splits, source_splits),
        splits=splits,
        source_splits=source_splits,
        duration=_duration(recipe, splits, source_splits, known),
        device=known.device,
        memory_bytes=memory,
        disk_bytes=disk,
        missing=known.missing,
        warnings=(*known.warnings, *_warnings(recipe, known, splits, memory, disk)),
    )


def _split(shares: Mapping[SplitName, float], images: int | None) -> dict[SplitName, int] | None:
    return None if images is None else {name: round(share * images) for name, share in shares.items()}


def _phases(
    recipe: Recipe, splits: dict[SplitName, int] | None, source_splits: dict[SplitName, int] | None
) -> tuple[PlannedPhase, ...]:
    epochs = recipe.optimisation.epochs
    images = None if splits is None else splits["training"]
    source = None if source_splits is None else source_splits["training"]
    phases = [PlannedPhase(phase="reading", images=_all(splits, source_splits, recipe))]
    if recipe.optimisation.learning_rate is None:
        phases.append(PlannedPhase(phase="learning_rate", images=images))
    if recipe.scenario == "pretraining":
        phases.append(PlannedPhase(phase="pretraining", images=source, epochs=epochs))
    if recipe.scenario == "co_training":
        # Both tasks are sampled equally often, and the images of the target make an epoch.
        images = None if images is None else 2 * images
    phases.append(PlannedPhase(phase="training", images=images, epochs=epochs))
    phases.append(PlannedPhase(phase="evaluating", images=None if splits is None else _held_out(splits)))
    phases.append(PlannedPhase(phase="exporting", images=None if splits is None else min(64, splits["test"])))
    return tuple(phases)


def _all(
    splits: dict[SplitName, int] | None, source_splits: dict[SplitName, int] | None, recipe: Recipe
) -> int | None:
    if splits is None or (recipe.needs_source_data and source_splits is None):
        return None
    return sum(splits.values()) + sum((source_splits or {}).values())


def _held_out(splits: dict[SplitName, int]) -> int:
    return sum(splits[name] for name in HELD_OUT)


def _duration(
    recipe: Recipe,
    splits: dict[SplitName, int] | None,
    source_splits: dict[SplitName, int] | None,
    known: Circumstances,
) -> Duration | None:
    phases = [one for one in _phases(recipe, splits, source_splits) if one.epochs is not None]
    counts = [one.images * (one.epochs or 1) for one in phases if one.images is not None]
    if splits is None or len(counts) < len(phases):
        return None
    validated = splits["validation"] + (0 if source_splits is None else source_splits["validation"])
    trained = sum(counts)
    seen_without_gradient = recipe.optimisation.epochs * validated + _held_out(splits)
    speed = known.speed or _guess(recipe, known.device)
    seconds = (trained + _EVALUATION * seen_without_gradient) / speed.images_per_second
    factor = RIGHT_TO[speed.basis]
    others, beyond = known.other_seconds, _REPEATED_FACTOR if known.other_seconds else _STARTING_FACTOR
    others = others or (STARTING_SECONDS,)
    return Duration(
        seconds=statistics.median(others) + seconds,
        low=min(others) / beyond + seconds / factor,
        high=max(others) * beyond + seconds * factor,
        images_per_second=speed.images_per_second,
        basis=speed.basis,
        explanation=_explain(speed, factor, known.other_seconds),
    )


def _guess(recipe: Recipe, device: str) -> Speed:
    edge = recipe.image_size or USUAL_EDGE
    speed = GUESSED_SPEED["gpu" if device.startswith("cuda") else "cpu"]
    return Speed(speed * (USUAL_EDGE / edge) ** 2, "guessed")


def _explain(speed: Speed, factor: float, other_seconds: Sequence[float]) -> str:
    trainings = "the last training" if len(other_seconds) == 1 else f"the last {len(other_seconds)} trainings"
    others = f"as {trainings} here" if other_seconds else f"a guess, {STARTING_SECONDS:.0f} s"
    of = f" ({speed.source})" if speed.source else ""
    origin = {
        "measured": f"measured in an earlier training{of}",
        "stated": f"as stated{of}",
        "guessed": "a guess: this architecture was not trained here at this size on this device",
    }[speed.basis]
    rounded = float(f"{speed.images_per_second:.3g}")
    return (
        f"{rounded:,.10g} images per second, {origin}; this may be wrong by a factor of {factor:g}, and"
        " early stopping makes the training shorter. Reading, export, evaluation and reports are included"
        f" ({others})."
    )


def _memory(recipe: Recipe) -> int:
    values = _values_of_image(recipe) * recipe.optimisation.batch_size
    return math.ceil(_PROCESS_BYTES + _ACTIVATIONS * values)


def _disk(recipe: Recipe, known: Circumstances) -> int | None:
    if known.images is None or (recipe.needs_source_data and known.source_images is None):
        return None
    images = known.images + (known.source_images or 0 if recipe.needs_source_data else 0)
    return math.ceil(_FILES_BYTES + _MARGIN * _values_of_image(recipe) * images)


def _values_of_image(recipe: Recipe) -> int:
    channels = 3 if recipe.colour == "rgb" else 1
    return channels * (recipe.image_size or USUAL_EDGE) ** 2


def _warnings(
    recipe: Recipe,
    known: Circumstances,
    splits: dict[SplitName, int] | None,
    memory: int,
    disk: int | None,
) -> list[str]:
    warnings: list[str] = []
    if recipe.image_size is None:
        warnings.append(
            f"The size of the images is that of timm's data config of {recipe.architecture}; memory and disk are"
            f" estimated for {USUAL_EDGE} pixels."
        )
    if recipe.initial_weights == "pretrained" and known.has_weights_file is False:
        warnings.append(
            f"There is no file of the weights of {recipe.architecture} in LIFELONG_TRAINING_WEIGHTS: timm gets them"
            " from its hub or its cache, and without either the training fails."
        )
    if splits is not None:
        warnings += [
            f"About {splits[name]} images for {known.classes} classes in the {name} split: intervals will be wide."
            " 50 or more of each class are advised."
            for name in HELD_OUT
            if splits[name] < 50 * known.classes
        ]
    if known.memory_bytes is not None and memory > known.memory_bytes:
        warnings.append(
            f"It may need {_gigabytes(memory)} of memory, a job may use {_gigabytes(known.memory_bytes)}"
            " (LIFELONG_JOB_MEMORY_BYTES): choose a smaller batch_size or image_size."
        )
    if disk is not None and known.free_disk_bytes is not None and disk > known.free_disk_bytes:
        warnings.append(
            f"It needs about {_gigabytes(disk)} of disk for decoded images, {_gigabytes(known.free_disk_bytes)} may"
            " be used (LIFELONG_JOB_DISK_BYTES)."
        )
    return warnings


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
