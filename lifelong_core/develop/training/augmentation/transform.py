"""Random crop, then one sub-policy for each image."""
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from lifelong_core.develop.training.augmentation.operations import OPERATIONS
from lifelong_core.develop.training.policy import AugmentationPolicy, Step

Transform: TypeAlias = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
"""From images, uint8 (n, C, H, W), and a generator to images, uint8 (n, C, h, w)."""

_PADDING = 8
"""Images without a margin are padded by 1/8 of their edge on each side, by reflection, before the crop."""


def policy_transform(policy: AugmentationPolicy, *, size: tuple[int, int]) -> Transform:
    """A random crop to `size`, then for each image one sub-policy, each step with its probability.

    Equal states of the generator give equal images.

    Args:
        policy: what is done after the crop.
        size: height and width of the result.
    """

    def transform(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return apply_policy(policy, random_crop(images, size, generator), generator)

    return transform


def random_crop(images: torch.Tensor, size: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """Cut a window of this size out of each image, at a place of its own."""
    height, width = size
    if tuple(images.shape[-2:]) == size:
        vertical, horizontal = height // _PADDING, width // _PADDING
        images = torch.nn.functional.pad(
            images.float(), (horizontal, horizontal, vertical, vertical), mode="reflect"
        ).to(torch.uint8)
    count, channels = images.shape[:2]
    top = torch.randint(images.shape[-2] - height + 1, (count, 1, 1, 1), generator=generator)
    left = torch.randint(images.shape[-1] - width + 1, (count, 1, 1, 1), generator=generator)
    rows = (top + torch.arange(height).view(1, 1, -1, 1)).expand(count, channels, height, images.shape[-1])
    columns = (left + torch.arange(width).view(1, 1, 1, -1)).expand(count, channels, height, width)
    return images.gather(2, rows.to(images.device)).gather(3, columns.to(images.device))


def apply_policy(
    policy: AugmentationPolicy, images: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Change each image by one sub-policy; the size stays."""
    if not policy.sub_policies or not len(images):
        return images
    chosen = torch.randint(len(policy.sub_policies), (len(images),), generator=generator)
    changed = images.clone()
    for number, steps in enumerate(policy.sub_policies):
        positions = torch.nonzero(chosen == number).flatten()
        if len(positions):
            changed[positions] = _apply_steps(steps, changed[positions], generator)
    return changed


def _apply_steps(steps: Sequence[Step], images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Change the given images themselves."""
    for step in steps:
        happens = torch.rand(len(images), generator=generator) < step.probability
        signs = torch.randint(2, (len(images),), generator=generator) * 2 - 1
        for sign in (-1, 1):
            positions = torch.nonzero(happens & (signs == sign)).flatten()
            if len(positions):
                images[positions] = OPERATIONS[step.operation](images[positions], sign * step.magnitude)
    return images
