"""The phases of a training: pretraining on the source task where the recipe wants it, then training."""
# pyright: reportUnknownMemberType=false

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn

from lifelong_core.develop.training.augmentation.transform import policy_transform
from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.optimisation.batches import TrainingBatches, class_mix, generator_of
from lifelong_core.develop.training.optimisation.classifier import (
    Computing,
    CoTrainedClassifier,
    InitialWeights,
    add_source_head,
    create_classifier,
    replace_classifier,
)
from lifelong_core.develop.training.optimisation.losses import STEPS, batch_loss, find_learning_rate
from lifelong_core.develop.training.optimisation.state import (
    Checkpoint,
    PhaseState,
    training_key,
    write_checkpoint,
)
from lifelong_core.develop.training.optimisation.trainer import Phase, train_phase
from lifelong_core.develop.training.progress import ProgressReport
from lifelong_core.develop.training.recipe import Optimisation, Recipe
from lifelong_core.develop.training.result import EpochRecord
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

READING_ENDS, TRAINING_ENDS = 0.05, 0.95
"""Fractions of the whole work."""
_STEPS_OF_VALIDATION = 1 / 3
"""An image that goes only forth through the model takes a third of the time."""
_SAVING_SHARE = 0.05
"""Largest share of the time that writing checkpoints may take."""


@dataclass(frozen=True, eq=False)
class Training:
    """All that decides a training, and its observers.

    Attributes:
        recipe: how to train.
        target: images of the target task.
        source: images of the source task; None: the recipe does not train on them.
        weights: initial ones of the backbone; None: random ones.
        computing: device and precision.
        report: of the progress.
        log: gets one line for each epoch.
    """

    recipe: Recipe
    target: PreparedImages
    source: PreparedImages | None
    weights: InitialWeights | None
    computing: Computing
    report: ProgressReport
    log: Callable[[str], None]

    @cached_property
    def key(self) -> str:
        """Digest of all that decides the result."""
        tasks = [self.target] if self.source is None else [self.target, self.source]
        data = [digest for images in tasks for digest in (images.digest, images.splits_digest)]
        return training_key(self.recipe, data, None if self.weights is None else self.weights.digest)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """In their order."""
        if self.recipe.scenario == "pretraining" and self.source is not None:
            return self._phase("pretraining", self.source), self._phase("training", self.target)
        return (self._phase("training", self.target, co_trained=self.source),)

    def _phase(self, name: str, images: PreparedImages, *, co_trained: PreparedImages | None = None) -> Phase:
        wanted = self.recipe.optimisation
        if name == "pretraining" and wanted.sampling == "prevalence":
            # The prevalence of the recipe is that of the target's classes.
            wanted = wanted.model_copy(update={"sampling": "balanced", "target_prevalence": None})
        mix = _mix(wanted, images)
        batches = TrainingBatches(
            images,
            None if wanted.sampling == "natural" else mix,
            transform=policy_transform(self.recipe.augmentation, size=images.input_size),
            batch_size=wanted.batch_size,
            source=co_trained,
            source_mix=None
            if co_trained is None or wanted.sampling == "natural"
            else np.full(len(co_trained.class_names), 1 / len(co_trained.class_names)),
            seed=(self.recipe.seed, name),
        )
        return Phase(
            "pretraining" if name == "pretraining" else "training",
            images,
            batches,
            mix,
            wanted,
            self.computing,
            self.recipe.seed,
        )

    def epoch_steps(self, phase: Phase) -> float:
        """Steps of one epoch for the progress report."""
        splits = phase.images.splits
        return len(splits["training"]) + _STEPS_OF_VALIDATION * len(splits["validation"])

    def search_steps(self, phase: Phase) -> float:
        """Steps of the range test for the learning rate."""
        if phase.optimisation.learning_rate is not None:
            return 0.0
        return STEPS * len(phase.images.splits["training"]) / phase.batches.per_epoch


def report_reading(report: ProgressReport, done: int, total: int) -> None:
    """Report how many images were read, as the first part of the work."""
    report.expect(total, begin=0.0, end=READING_ENDS)
    report.reach(done, images=done)


def train(
    training: Training, checkpoint: Checkpoint | None, on_checkpoint: Callable[[bytes], None]
) -> tuple[nn.Module, tuple[EpochRecord, ...]]:
    """Run the phases in their order.

    Args:
        training: what is trained, and how.
        checkpoint: to go on from; None: from the beginning.
        on_checkpoint: gets a checkpoint after epochs.

    Returns:
        The model with its best weights, in evaluation mode on the CPU, and the epochs of all phases.

    Raises:
        InvalidInputError: the architecture does not suit the images, or the loss is not finite.
    """
    phases, report = training.phases, training.report
    totals = [
        training.search_steps(phase) + phase.optimisation.epochs * training.epoch_steps(phase)
        for phase in phases
    ]
    report.expect(sum(totals), begin=READING_ENDS, end=TRAINING_ENDS)
    epochs = () if checkpoint is None else checkpoint.earlier
    begin = 0 if checkpoint is None else checkpoint.phase
    module = _created(training, phases[begin])
    for number in range(begin, len(phases)):
        if number > begin:
            torch.manual_seed(generator_of(training.recipe.seed, "second classifier").initial_seed())
            replace_classifier(module, len(phases[number].images.class_names))
        state = checkpoint.state if checkpoint is not None and number == begin else None
        saver = _Saver(training, number, epochs, on_checkpoint)
        ended = _train_phase(training, module, phases[number], state, saver, done=sum(totals[:number]))
        epochs = (*epochs, *ended.epochs)
        report.reach(sum(totals[: number + 1]))
    trained = module.target if isinstance(module, CoTrainedClassifier) else module
    return trained.cpu().eval(), epochs


def _created(training: Training, phase: Phase) -> nn.Module:
    """The model of the first phase that is trained here, with random classifiers, on its device."""
    recipe, size = training.recipe, training.target.input_size
    torch.manual_seed(generator_of(recipe.seed, "model").initial_seed())
    module = create_classifier(recipe, len(phase.images.class_names), size=size, weights=training.weights)
    if recipe.scenario == "co_training" and training.source is not None:
        example = torch.zeros(1, training.target.preprocessing.channels, *size)
        module = add_source_head(module, len(training.source.class_names), example)
    return module.to(training.computing.device)


def _train_phase(
    training: Training,
    module: nn.Module,
    phase: Phase,
    state: PhaseState | None,
    saver: "_Saver",
    *,
    done: float,
) -> PhaseState:
    """Find the learning rate unless the recipe or the state has it, then train; `done` steps were done before."""
    report, wanted = training.report, phase.optimisation
    rate = wanted.learning_rate
    if state is not None:
        training.log(f"goes on after epoch {len(state.epochs)} of the {phase.name}")
        rate = state.epochs[0].learning_rate
    elif rate is None:
        rate = _search_rate(training, module, phase, done=done)
    done += training.search_steps(phase)
    per_epoch = training.epoch_steps(phase)
    finished = 0 if state is None else len(state.epochs)
    report.begin(phase.name, epoch=finished, epochs=wanted.epochs, learning_rate=rate)
    images_before = finished * len(phase.images.splits["training"])

    def on_batch(epoch: int, batches: int) -> None:
        share = batches / phase.batches.per_epoch
        images = (epoch - 1 + share) * len(phase.images.splits["training"]) - images_before
        report.reach(done + per_epoch * (epoch - 1 + share), images=round(images))

    def on_epoch(reached: PhaseState) -> None:
        saver.offer(reached)
        last = reached.epochs[-1]
        report.send(
            epoch=last.epoch,
            learning_rate=last.learning_rate,
            training_loss=last.training_loss,
            validation_loss=last.validation_loss,
            validation_metric=last.validation_metric,
        )
        training.log(_line(last, wanted.epochs))

    return train_phase(module, phase, learning_rate=rate, state=state, on_batch=on_batch, on_epoch=on_epoch)


def _search_rate(training: Training, module: nn.Module, phase: Phase, *, done: float) -> float:
    training.report.begin("learning_rate")
    per_step = training.search_steps(phase) / STEPS
    torch.manual_seed(generator_of(training.recipe.seed, phase.name, "learning rate").initial_seed())
    rate = find_learning_rate(
        module,
        lambda epoch: phase.batches.prepared(epoch, threads=phase.threads),
        lambda copied, batch: batch_loss(copied, batch, phase.computing),
        weight_decay=phase.optimisation.weight_decay,
        on_step=lambda step: training.report.reach(done + step * per_step),
    )
    training.log(f"learning rate {rate:.2g}, by a range test")
    return rate


class _Saver:
    """Gives away checkpoints, as often as their share of the time allows; the first one at once."""

    def __init__(
        self,
        training: Training,
        phase: int,
        earlier: tuple[EpochRecord, ...],
        on_checkpoint: Callable[[bytes], None],
    ) -> None:
        self._training = training
        self._phase = phase
        self._earlier = earlier
        self._on_checkpoint = on_checkpoint
        self._next_at = 0.0

    def offer(self, state: PhaseState) -> None:
        started = time.monotonic()
        if started < self._next_at:
            return
        checkpoint = Checkpoint(self._training.key, self._earlier, self._phase, state)
        self._on_checkpoint(write_checkpoint(checkpoint))
        ended = time.monotonic()
        self._next_at = ended + (ended - started) / _SAVING_SHARE


def _mix(optimisation: Optimisation, images: PreparedImages) -> Floats:
    """Shares of the classes in the batches of the training split.

    Raises:
        InvalidInputError: the prevalence has another number of classes.
    """
    counts = np.bincount(images.labels[images.splits["training"]], minlength=len(images.class_names))
    mix = class_mix(optimisation, counts)
    if len(mix) != len(counts):
        raise InvalidInputError(
            f"target_prevalence has {len(mix)} classes, the images have {len(counts)}.",
            field="target_prevalence",
            hint=f"Give one number for each of {', '.join(images.class_names)}.",
        )
    return mix


def _line(epoch: EpochRecord, epochs: int) -> str:
    return (
        f"{epoch.phase}, epoch {epoch.epoch} of at most {epochs}: loss {epoch.training_loss:.4f}, validation loss "
        f"{epoch.validation_loss:.4f}, balanced accuracy {epoch.validation_metric:.3f}, {epoch.seconds:.1f} s"
    )
