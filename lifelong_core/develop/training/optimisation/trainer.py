"""The epochs of one phase: Adam, plateau schedule, early stopping, best weights (thesis, section 6.1.4)."""
# pyright: reportUnknownMemberType=false

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.optimisation.batches import TrainingBatches, generator_of
from lifelong_core.develop.training.optimisation.classifier import (
    Computing,
    CoTrainedClassifier,
    load_weights,
)
from lifelong_core.develop.training.optimisation.losses import Score, batch_loss, score, split_logits
from lifelong_core.develop.training.optimisation.state import PhaseState, Tensors
from lifelong_core.develop.training.recipe import Optimisation
from lifelong_core.develop.training.result import EpochRecord
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

_THREADS_BESIDE_GPU = 4
"""that prepare batches; beside a CPU one is enough, since the training needs the cores"""


@dataclass(frozen=True, eq=False)
class Phase:
    """What is trained on.

    Attributes:
        name: pretraining is on the images of the source task.
        images: of the task whose head is scored; it has the splits training and validation.
        batches: of the training split.
        mix: shares of the classes in the batches, (C,).
        optimisation: of the recipe.
        computing: device and precision.
        seed: of everything random.
    """

    name: Literal["pretraining", "training"]
    images: PreparedImages
    batches: TrainingBatches
    mix: Floats
    optimisation: Optimisation
    computing: Computing
    seed: int

    @property
    def threads(self) -> int:
        """That prepare batches."""
        return _THREADS_BESIDE_GPU if self.computing.is_gpu else 1


def train_phase(
    module: nn.Module,
    phase: Phase,
    *,
    learning_rate: float,
    state: PhaseState | None,
    on_batch: Callable[[int, int], None],
    on_epoch: Callable[[PhaseState], None],
) -> PhaseState:
    """Train until the validation loss no longer falls; the module has the best weights then, in training mode.

    Args:
        module: on the device of the phase.
        phase: what it is trained on.
        learning_rate: at the start; unused with a state.
        state: of an interrupted phase, which goes on; None: from the beginning.
        on_batch: called with the epoch and its finished batches.
        on_epoch: called with the state after each epoch.

    Raises:
        InvalidInputError: the loss is not finite.
    """
    wanted = phase.optimisation
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate, weight_decay=wanted.weight_decay)
    schedule = ReduceLROnPlateau(optimiser, factor=wanted.plateau_factor, patience=wanted.plateau_patience)
    if state is not None:
        load_weights(module, state.weights)
        optimiser.load_state_dict(state.optimiser)
        schedule.load_state_dict(state.schedule)
    while state is None or not state.is_over(epochs=wanted.epochs, patience=wanted.patience):
        epoch = 1 if state is None else len(state.epochs) + 1
        record = _train_epoch(module, phase, optimiser, epoch, on_batch)
        schedule.step(record.validation_loss)
        state = _advanced(state, record, module, optimiser, schedule)
        on_epoch(state)
    load_weights(module, state.best_weights)
    return state


def _train_epoch(
    module: nn.Module,
    phase: Phase,
    optimiser: torch.optim.Optimizer,
    epoch: int,
    on_batch: Callable[[int, int], None],
) -> EpochRecord:
    started = time.monotonic()
    rate = float(optimiser.param_groups[0]["lr"])
    # Dropout and stochastic depth draw from torch's own generator.
    torch.manual_seed(generator_of(phase.seed, phase.name, epoch, "layers").initial_seed())
    module.train()
    total, images = torch.zeros((), device=phase.computing.device), 0
    for number, batch in enumerate(phase.batches.prepared(epoch, threads=phase.threads), 1):
        optimiser.zero_grad(set_to_none=True)
        loss = batch_loss(module, batch, phase.computing)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        total += loss.detach() * len(batch.images)
        images += len(batch.images)
        on_batch(epoch, number)
    training_loss, validation = float(total) / images, validate(module, phase)
    if not (math.isfinite(training_loss) and math.isfinite(validation.loss)):
        raise InvalidInputError(
            f"the loss is not finite in epoch {epoch} of the {phase.name}.",
            field="learning_rate",
            hint=f"The learning rate was {rate:.2g}: give a tenth of it in the recipe.",
        )
    return EpochRecord(
        phase=phase.name,
        epoch=epoch,
        learning_rate=rate,
        training_loss=training_loss,
        validation_loss=validation.loss,
        validation_metric=validation.balanced_accuracy,
        seconds=time.monotonic() - started,
    )


def validate(module: nn.Module, phase: Phase) -> Score:
    """Score of the model, with the head of the phase's task, on the validation split."""
    scored = module.target if isinstance(module, CoTrainedClassifier) else module
    positions = phase.images.splits["validation"]
    logits = split_logits(scored, phase.images, positions, phase.computing)
    return score(logits, phase.images.labels[positions], phase.mix)


def _advanced(
    state: PhaseState | None,
    record: EpochRecord,
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    schedule: ReduceLROnPlateau,
) -> PhaseState:
    weights = _copied(module)
    epochs = (record,) if state is None else (*state.epochs, record)
    advanced = PhaseState(epochs, weights, weights, optimiser.state_dict(), schedule.state_dict())
    if state is None or advanced.best_epoch == record.epoch:
        return advanced
    return PhaseState(epochs, weights, state.best_weights, advanced.optimiser, advanced.schedule)


def _copied(module: nn.Module) -> Tensors:
    return {name: tensor.detach().cpu().clone() for name, tensor in module.state_dict().items()}
