"""Random crop, then one sub-policy for each image."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
# The types of torchvision are incomplete.

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TypeAlias

import torch

from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.develop.training.recipe import AugmentationPolicy, Operation, Step, SubPolicy

declare_missing_operators()
from torchvision.transforms import InterpolationMode  # noqa: E402 - needs torchvision, see above
from torchvision.transforms.v2 import functional as F  # noqa: E402, N812 - its usual name

Transform: TypeAlias = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
"""From images, uint8 (n, C, H, W), and a generator to images, uint8 (n, C, h, w)."""

_PADDING = 8
"""Images without a margin are padded by 1/8 of their edge on each side, by reflection, before the crop."""

Images: TypeAlias = torch.Tensor
"""uint8, (n, C, H, W)"""
Apply: TypeAlias = Callable[[Images, float], Images]
"""From images and a signed magnitude in [-1, 1] to images."""

LARGEST_SHEAR = 17.0
"""Degrees, as the 0.3 of AutoAugment (Cubuk et al., 2019)."""
LARGEST_SHIFT = 0.3
"""Of the edge."""
LARGEST_ROTATION = 30.0
"""Degrees."""
LARGEST_CHANGE = 0.9
"""Of brightness, contrast, saturation and sharpness: factors 0.1 to 1.9."""
LARGEST_BLUR = 2.0
"""Standard deviation of the blur in pixels, for an edge of 224."""
_SMALLEST_BLUR = 0.1
_LARGEST_VALUE = 255
_EDGE = 224
_BILINEAR = InterpolationMode.BILINEAR

WITHOUT_STRENGTH: frozenset[Operation] = frozenset(
    {"identity", "autocontrast", "equalize", "horizontal_flip", "vertical_flip"}
)
"""Operations that ignore the magnitude."""

STRENGTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Weaker steps would always win: the loss of a model is lowest on images that hardly change."""

Steps = tuple[Step, ...]


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


def _affine(
    images: Images, *, angle: float = 0, x: float = 0, y: float = 0, shear: tuple[float, float] = (0, 0)
) -> Images:
    height, width = images.shape[-2:]
    shift = [float(round(x * width)), float(round(y * height))]
    return F.affine(images, angle, shift, 1.0, list(shear), interpolation=_BILINEAR)


def _posterize(images: Images, magnitude: float) -> Images:
    return F.posterize(images, 8 - round(4 * abs(magnitude)))


def _solarize(images: Images, magnitude: float) -> Images:
    threshold = 256 - 256 * abs(magnitude)
    return images if threshold > _LARGEST_VALUE else F.solarize(images, threshold)


def _blur(images: Images, magnitude: float) -> Images:
    sigma = abs(magnitude) * LARGEST_BLUR * min(images.shape[-2:]) / _EDGE
    if sigma < _SMALLEST_BLUR:
        return images
    size = 2 * min(max(1, round(3 * sigma)), (min(images.shape[-2:]) - 1) // 2) + 1
    return F.gaussian_blur(images, [size, size], [sigma, sigma])


OPERATIONS: Mapping[Operation, Apply] = MappingProxyType(
    {
        "identity": lambda images, _: images,
        "shear_x": lambda images, m: _affine(images, shear=(LARGEST_SHEAR * m, 0)),
        "shear_y": lambda images, m: _affine(images, shear=(0, LARGEST_SHEAR * m)),
        "translate_x": lambda images, m: _affine(images, x=LARGEST_SHIFT * m),
        "translate_y": lambda images, m: _affine(images, y=LARGEST_SHIFT * m),
        "rotate": lambda images, m: _affine(images, angle=LARGEST_ROTATION * m),
        "brightness": lambda images, m: F.adjust_brightness(images, 1 + LARGEST_CHANGE * m),
        "contrast": lambda images, m: F.adjust_contrast(images, 1 + LARGEST_CHANGE * m),
        "saturation": lambda images, m: F.adjust_saturation(images, 1 + LARGEST_CHANGE * m),
        "sharpness": lambda images, m: F.adjust_sharpness(images, 1 + LARGEST_CHANGE * m),
        "posterize": _posterize,
        "solarize": _solarize,
        "autocontrast": lambda images, _: F.autocontrast(images),
        "equalize": lambda images, _: F.equalize(images),
        "gaussian_blur": _blur,
        "horizontal_flip": lambda images, _: F.horizontal_flip(images),
        "vertical_flip": lambda images, _: F.vertical_flip(images),
    }
)
"""By name, what the operation does to images of one strength."""


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
