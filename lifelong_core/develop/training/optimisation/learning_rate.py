"""Range test for the learning rate at the start (Smith, 2017: Cyclical Learning Rates for Training Neural Networks)."""
# pyright: reportUnknownMemberType=false

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import nn

from lifelong_core.develop.training.optimisation.batches import Batch

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
