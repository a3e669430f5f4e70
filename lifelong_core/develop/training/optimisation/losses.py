"""Loss of a batch, loss and metric on a split, and the range test for the learning rate (Smith, 2017)."""
# pyright: reportUnknownMemberType=false

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.optimisation.batches import Batch
from lifelong_core.develop.training.optimisation.classifier import Computing, CoTrainedClassifier
from lifelong_core.values.arrays import Floats

SMALLEST, LARGEST = 1e-5, 1e-2
"""A rate outside is not suggested: noise of the first losses would let Adam stand still or diverge."""
FALLBACK = 1e-3
"""Adam's usual rate, where the test shows no falling loss."""
STEPS = 100
_FIRST, _LAST = 1e-7, 1.0
_DIVERGED = 4.0
"""The test ends at a loss of so many times the lowest."""
_MEMORY = 0.95
"""of the smoothed loss, for each step"""


@dataclass(frozen=True)
class Score:
    """How good a model is on a split.

    Attributes:
        loss: mean cross-entropy within each class, averaged with the class shares of training, so that it is the loss
            that training lowers.
        balanced_accuracy: mean sensitivity of the classes.
    """

    loss: float
    balanced_accuracy: float


def batch_loss(module: nn.Module, batch: Batch, computing: Computing) -> torch.Tensor:
    """Mean cross-entropy; in co-training, the mean of both tasks' (thesis, section 5.1.3)."""
    inputs = computing.inputs(batch.images)
    labels = batch.labels.to(computing.device)
    with computing.precision():
        if not isinstance(module, CoTrainedClassifier):
            return nn.functional.cross_entropy(module(inputs), labels)
        target, source = module(inputs)
        losses = (
            nn.functional.cross_entropy(target[: len(labels)], labels),
            nn.functional.cross_entropy(source[len(labels) :], batch.source_labels.to(computing.device)),
        )
    return (losses[0] + losses[1]) / 2


def split_logits(
    module: nn.Module, images: PreparedImages, positions: NDArray[np.int64], computing: Computing
) -> torch.Tensor:
    """Logits (n, classes) of these images, in evaluation mode."""
    module.eval()
    return torch.cat([computing.logits(module, inputs) for inputs in images.batches(positions)])


def score(logits: torch.Tensor, labels: NDArray[np.int64], mix: Floats) -> Score:
    """Score logits (n, C).

    Args:
        logits: float32.
        labels: (n,); each class occurs.
        mix: shares of the classes in training, (C,).
    """
    losses = nn.functional.cross_entropy(logits, torch.from_numpy(labels), reduction="none").numpy()
    right = (logits.argmax(1).numpy() == labels).astype(np.float64)
    counts = np.bincount(labels, minlength=len(mix))
    means, sensitivities = (
        np.bincount(labels, values, minlength=len(mix)) / counts for values in (losses, right)
    )
    return Score(float(mix @ means), float(sensitivities.mean()))


def find_learning_rate(
    module: nn.Module,
    batches: Callable[[int], Iterator[Batch]],
    loss_of: Callable[[nn.Module, Batch], torch.Tensor],
    *,
    weight_decay: float,
    on_step: Callable[[int], None] = lambda _: None,
) -> float:
    """The rate at which the smoothed loss falls most steeply over the logarithm of the rate, by Adam on a copy.

    Args:
        module: the model; it is not changed.
        batches: those of an epoch, by its number.
        loss_of: loss of a model on a batch.
        weight_decay: of Adam.
        on_step: called with the number of steps so far.
    """
    copied = copy.deepcopy(module).train()
    optimiser = torch.optim.Adam(copied.parameters(), lr=_FIRST, weight_decay=weight_decay)
    rates = np.geomspace(_FIRST, _LAST, STEPS)
    losses: list[float] = []
    smoothed = 0.0
    stream = itertools.chain.from_iterable(batches(epoch) for epoch in itertools.count(1))
    for step, batch in enumerate(itertools.islice(stream, STEPS)):
        optimiser.param_groups[0]["lr"] = float(rates[step])
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(copied, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        smoothed = _MEMORY * smoothed + (1 - _MEMORY) * float(loss.detach())
        losses.append(smoothed / (1 - _MEMORY ** (step + 1)))
        on_step(step + 1)
        if not math.isfinite(losses[-1]) or losses[-1] > _DIVERGED * min(losses):
            break
    return steepest_rate(rates[: len(losses)], losses)


def steepest_rate(rates: Sequence[float] | np.ndarray, losses: Sequence[float]) -> float:
    """The rate within SMALLEST..LARGEST at which the loss falls most steeply; FALLBACK where it falls nowhere.

    Args:
        rates: (n,), a geometric sequence.
        losses: (n,), smoothed; the last may be not finite.
    """
    known = np.asarray(losses, dtype=np.float64)
    known = known[np.isfinite(known)]
    tested = np.asarray(rates, dtype=np.float64)[: len(known)]
    if len(known) < 3:
        return FALLBACK
    slopes = np.gradient(known)
    allowed = (tested >= SMALLEST) & (tested <= LARGEST)
    if not allowed.any() or slopes[allowed].min() >= 0:
        return FALLBACK
    return float(tested[allowed][np.argmin(slopes[allowed])])
