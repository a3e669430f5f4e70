"""Everything that an interrupted training needs to go on, as bytes."""
# pyright: reportUnknownMemberType=false

import hashlib
import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import EpochRecord

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class PhaseState:
    """A phase after an epoch.

    Attributes:
        epochs: of this phase; at least one.
        weights: of the module.
        best_weights: of the epoch with the lowest validation loss.
        optimiser: state of Adam.
        schedule: state of the plateau schedule.
    """

    epochs: tuple[EpochRecord, ...]
    weights: Tensors
    best_weights: Tensors
    optimiser: dict[str, Any]
    schedule: dict[str, Any]

    @property
    def best_epoch(self) -> int:
        """Epoch with the lowest validation loss, the first of equal ones, from 1."""
        losses = [epoch.validation_loss for epoch in self.epochs]
        return losses.index(min(losses)) + 1

    def is_over(self, *, epochs: int, patience: int) -> bool:
        """Whether the phase has its largest number of epochs, or of epochs since the best one."""
        return len(self.epochs) >= epochs or len(self.epochs) - self.best_epoch >= patience


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A training after an epoch.

    Attributes:
        key: from `training_key`.
        earlier: epochs of finished phases.
        phase: number of the current phase, from 0.
        state: of the current phase.
    """

    key: str
    earlier: tuple[EpochRecord, ...]
    phase: int
    state: PhaseState


def training_key(recipe: Recipe, data: Sequence[str], initial_weights: str | None) -> str:
    """Digest of everything that decides the result of a training: a checkpoint with another key cannot be used.

    Args:
        recipe: of the training.
        data: digests of the images of target and source, and of their splits.
        initial_weights: digest of the weights at the start.
    """
    parts = (recipe.model_dump_json(), *data, str(initial_weights), torch.__version__)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def write_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The checkpoint as bytes."""
    state = checkpoint.state
    buffer = io.BytesIO()
    torch.save(
        {
            "key": checkpoint.key,
            "earlier": [epoch.model_dump() for epoch in checkpoint.earlier],
            "phase": checkpoint.phase,
            "epochs": [epoch.model_dump() for epoch in state.epochs],
            "weights": state.weights,
            "best_weights": state.best_weights,
            "optimiser": state.optimiser,
            "schedule": state.schedule,
        },
        buffer,
    )
    return buffer.getvalue()


def read_checkpoint(content: bytes, key: str) -> Checkpoint | None:
    """The checkpoint in these bytes; None: it is damaged, or that of another training. Nothing in it is executed."""
    try:
        document: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        if document["key"] != key:
            return None
        state = PhaseState(
            _epochs(document["epochs"]),
            document["weights"],
            document["best_weights"],
            document["optimiser"],
            document["schedule"],
        )
        return Checkpoint(key, _epochs(document["earlier"]), document["phase"], state)
    except (RuntimeError, ValueError, KeyError, TypeError, EOFError, OSError, pickle.UnpicklingError):
        return None


def _epochs(documents: Sequence[dict[str, Any]]) -> tuple[EpochRecord, ...]:
    return tuple(EpochRecord.model_validate(document) for document in documents)
