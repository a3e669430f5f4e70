"""Progress of a training, as the record of its job shows it."""

import time
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from pydantic import Field

from lifelong_core.values.documents import FrozenDocument

Phase: TypeAlias = Literal[
    "reading", "learning_rate", "pretraining", "training", "searching", "evaluating", "exporting"
]

_SECONDS_BETWEEN = 1.0
_TIMED: frozenset[Phase] = frozenset({"pretraining", "training", "searching"})
"""Phases whose speed tells how long the remaining steps take."""


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


class ProgressReport:
    """Counts steps of a training, and sends its progress at most once a second, and at the start of phases.

    Args:
        device: in words.
        on_progress: gets the progress.
    """

    def __init__(self, device: str, on_progress: Callable[[TrainingProgress], None]) -> None:
        self._device = device
        self._on_progress = on_progress
        self._facts: dict[str, Any] = {}
        self._phase: Phase = "reading"
        self._begin, self._end = 0.0, 0.0
        self._total, self._done = 0.0, 0.0
        self._fraction = 0.0
        self._began, self._began_at = time.monotonic(), 0.0
        self._sent_at = self._began - _SECONDS_BETWEEN

    def expect(self, steps: float, *, begin: float, end: float) -> None:
        """Announce the next steps, counted from 0, and the fractions of the whole work before and after them."""
        self._total, self._done, self._begin, self._end = steps, 0.0, begin, end

    def begin(self, phase: Phase, **facts: Any) -> None:
        """Start a phase; facts are fields of TrainingProgress that hold in this phase."""
        self._phase, self._facts = phase, facts
        self._began, self._began_at = time.monotonic(), self._done
        self.send()

    def reach(self, steps: float, *, images: int | None = None) -> None:
        """Note the number of done steps, and of done images of this phase."""
        self._done = max(self._done, steps)
        seconds = time.monotonic() - self._began
        if images is not None and seconds > 0:
            self._facts["images_per_second"] = images / seconds
        if time.monotonic() - self._sent_at >= _SECONDS_BETWEEN:
            self.send()

    def send(self, **facts: Any) -> None:
        """Send the progress now; facts are fields of TrainingProgress that hold in this phase."""
        self._facts |= facts
        self._sent_at = time.monotonic()
        if self._total:
            reached = self._begin + (self._end - self._begin) * min(1.0, self._done / self._total)
            self._fraction = max(self._fraction, reached)
        self._on_progress(
            TrainingProgress(
                phase=self._phase,
                fraction=self._fraction,
                seconds_left=self._seconds_left(),
                device=self._device,
                **self._facts,
            )
        )

    def _seconds_left(self) -> float | None:
        """Of the expected steps, at the speed of this phase; None: there are too few steps to tell."""
        steps, seconds = self._done - self._began_at, time.monotonic() - self._began
        if self._phase not in _TIMED or steps <= 0.01 * self._total:
            return None
        return max(0.0, self._total - self._done) / steps * seconds
