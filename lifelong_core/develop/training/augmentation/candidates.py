"""Random sub-policies that a search tries."""
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from itertools import product

import torch

from lifelong_core.develop.training.augmentation.operations import OPERATIONS, WITHOUT_STRENGTH
from lifelong_core.develop.training.policy import Operation, Step, SubPolicy

STRENGTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Weaker steps would always win: the loss of a model is lowest on images that hardly change."""

Steps = tuple[Step, ...]


def effective_steps(images: torch.Tensor) -> dict[Operation, Steps]:
    """The steps of each operation that change most of these images, in both directions.

    A step without effect, such as saturation on grey images, would win every comparison.

    Args:
        images: uint8 (n, C, H, W), a few of the task.
    """
    found: dict[Operation, Steps] = {
        name: tuple(step for step in _steps(name) if _changes(step, images)) for name in OPERATIONS
    }
    return {name: steps for name, steps in found.items() if steps}


def draw_candidates(
    steps: dict[Operation, Steps], count: int, generator: torch.Generator
) -> tuple[SubPolicy, ...]:
    """Different sub-policies of one step, or of two steps of different operations; each number is as likely.

    Args:
        steps: to choose from; every operation is as likely.
        count: how many; fewer where there are no more.
        generator: draws them.
    """
    single = [(step,) for own in steps.values() for step in own]
    double = [
        pair
        for first, second in product(steps, repeat=2)
        if first != second
        for pair in product(steps[first], steps[second])
    ]
    candidates: list[SubPolicy] = [*single, *double]
    if not candidates:
        return ()
    weights = torch.tensor([*_weights(single, steps), *_weights(double, steps)], dtype=torch.float64)
    wanted = min(count, len(candidates))
    drawn: list[int] = torch.multinomial(weights, wanted, generator=generator).numpy().tolist()
    return tuple(candidates[number] for number in drawn)


def _weights(candidates: Sequence[Steps], steps: dict[Operation, Steps]) -> list[float]:
    """Weights that sum to 1: a candidate's is lower the more strengths its operations have."""
    weights = [1.0] * len(candidates)
    for number, candidate in enumerate(candidates):
        for step in candidate:
            weights[number] /= len(steps[step.operation])
    total = sum(weights)
    return [weight / total for weight in weights]


def _steps(name: Operation) -> Steps:
    strengths = (0.0,) if name in WITHOUT_STRENGTH else STRENGTHS
    return tuple(Step(operation=name, probability=1, magnitude=strength) for strength in strengths)


def _changes(step: Step, images: torch.Tensor) -> bool:
    for sign in (-1, 1):
        changed = OPERATIONS[step.operation](images, sign * step.magnitude) != images
        if int(changed.flatten(1).any(1).sum()) <= len(images) // 2:
            return False
    return True
