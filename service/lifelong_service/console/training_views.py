"""A training for its page: the curves of its epochs as lines of an SVG, and its facts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lifelong_core.develop.training.result import EpochRecord, TrainingResult

WIDTH, HEIGHT, MARGIN = 560, 200, 44
"""Of a chart in pixels; the margin is for the axes."""


@dataclass(frozen=True)
class Line:
    """One curve: its name, its class in the style sheet, and its points as SVG wants them."""

    name: str
    style: str
    points: str


@dataclass(frozen=True)
class Chart:
    """Curves of one phase over its epochs."""

    title: str
    lines: tuple[Line, ...]
    low: str
    high: str
    last: int
    """number of the last epoch"""
    best: float | None
    """place of the best epoch; None: this phase has none"""


def charts_of(result: "TrainingResult") -> list[Chart]:
    """Loss and balanced accuracy of each phase with two epochs or more."""
    found: list[Chart] = []
    for phase, group in groupby(result.epochs, key=lambda one: one.phase):
        epochs = list(group)
        if len(epochs) < 2:
            continue
        best = result.best_epoch if phase == "training" else None
        found.append(
            _chart(
                f"Loss, {phase}",
                epochs,
                best,
                (
                    ("training", lambda one: one.training_loss),
                    ("validation", lambda one: one.validation_loss),
                ),
            )
        )
        found.append(
            _chart(
                f"Balanced accuracy on the validation split, {phase}",
                epochs,
                best,
                (("validation", lambda one: one.validation_metric),),
            )
        )
    return found


def _chart(
    title: str,
    epochs: "Sequence[EpochRecord]",
    best: int | None,
    curves: "Sequence[tuple[str, Callable[[EpochRecord], float]]]",
) -> Chart:
    values = [value_of(one) for _, value_of in curves for one in epochs]
    low, high = min(values), max(values)
    span, last = high - low or 1.0, epochs[-1].epoch

    def x(epoch: int) -> float:
        return round(MARGIN + (WIDTH - MARGIN - 8) * (epoch - 1) / max(last - 1, 1), 1)

    def y(value: float) -> float:
        return round(8 + (HEIGHT - MARGIN - 8) * (high - value) / span, 1)

    lines = tuple(
        Line(name, name, " ".join(f"{x(one.epoch)},{y(value_of(one))}" for one in epochs))
        for name, value_of in curves
    )
    return Chart(title, lines, f"{low:.3g}", f"{high:.3g}", last, None if best is None else x(best))
