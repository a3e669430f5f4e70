"""The operations of augmentation policies, by torchvision's v2 functions."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
# The types of torchvision are incomplete.

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import torch

from lifelong_core.develop.torchvision_operators import declare_missing_operators
from lifelong_core.develop.training.policy import Operation

declare_missing_operators()
from torchvision.transforms import InterpolationMode  # noqa: E402 - needs torchvision, see above
from torchvision.transforms.v2 import functional as F  # noqa: E402, N812 - its usual name

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

WITHOUT_STRENGTH: frozenset[Operation] = frozenset(
    {"identity", "autocontrast", "equalize", "horizontal_flip", "vertical_flip"}
)
"""Operations that ignore the magnitude."""
