"""Progress of a training, as the record of its job shows it."""

from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.values.documents import FrozenDocument

Phase: TypeAlias = Literal[
    "reading", "learning_rate", "pretraining", "training", "searching", "evaluating", "exporting"
]


class TrainingProgress(FrozenDocument):
    """State of a training after its last step, as kept in the job's record."""

    phase: Phase
    fraction: float = Field(ge=0, le=1)
    """of the whole work, by the largest number of epochs: early stopping makes it jump to the end"""
    epoch: int | None = Field(default=None, ge=0)
    """finished epochs of this phase"""
    epochs: int | None = Field(default=None, ge=1)
    """largest number of them"""
    training_loss: float | None = None
    validation_loss: float | None = None
    validation_metric: float | None = None
    """balanced accuracy on the validation split"""
    learning_rate: float | None = None
    images_per_second: float | None = None
    seconds_left: float | None = Field(default=None, ge=0)
    """an upper estimate; None: not known yet"""
    device: str | None = None
