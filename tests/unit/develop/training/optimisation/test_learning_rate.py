"""The range test for the learning rate."""

import math

import numpy as np
import pytest
import torch

from lifelong_core.develop.training.optimisation.batches import Batch
from lifelong_core.develop.training.optimisation.losses import (
    FALLBACK,
    LARGEST,
    SMALLEST,
    STEPS,
    find_learning_rate,
    steepest_rate,
)

RATES = np.geomspace(1e-7, 1, STEPS)


@pytest.mark.parametrize("place", [3e-5, 1e-4, 1e-3])
def test_the_rate_is_where_the_loss_falls_most_steeply(place: float) -> None:
    losses = 1 / (1 + (RATES / place) ** 2)
    assert steepest_rate(RATES, losses.tolist()) == pytest.approx(place, rel=0.5)


def test_a_loss_that_never_falls_gives_the_usual_rate() -> None:
    assert steepest_rate(RATES, np.linspace(1, 2, STEPS).tolist()) == FALLBACK
    assert steepest_rate(RATES[:2], [1.0, 0.5]) == FALLBACK


def test_rates_outside_the_limits_are_not_suggested() -> None:
    early = np.where(RATES < SMALLEST, 5 - 10 * RATES / SMALLEST, 0) - 0.001 * np.log(RATES)
    assert SMALLEST <= steepest_rate(RATES, early.tolist()) <= LARGEST


def test_values_that_are_not_finite_are_left_out() -> None:
    losses = [*(1 / (1 + (RATES[:80] / 1e-3) ** 2)), math.nan, math.inf]
    assert steepest_rate(RATES[:82], losses) == pytest.approx(1e-3, rel=0.5)


def test_the_model_stays_as_it_is_and_the_test_ends_when_the_loss_diverges() -> None:
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 1)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    batch = Batch(torch.randn(16, 2), torch.randn(16), torch.zeros(0))
    steps: list[int] = []

    def loss_of(model: torch.nn.Module, given: Batch) -> torch.Tensor:
        return ((model(given.images).flatten() - given.labels) ** 2).mean()

    rate = find_learning_rate(
        module, lambda _: iter([batch]), loss_of, weight_decay=0.0, on_step=steps.append
    )
    assert SMALLEST <= rate <= LARGEST
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert steps == list(range(1, len(steps) + 1))

    def diverges(model: torch.nn.Module, given: Batch) -> torch.Tensor:
        return loss_of(model, given) * math.exp(len(steps))

    steps.clear()
    find_learning_rate(module, lambda _: iter([batch]), diverges, weight_decay=0.0, on_step=steps.append)
    assert len(steps) < STEPS
