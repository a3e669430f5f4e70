"""Operations against torchvision's v2 functions, called here with parameters worked out by hand."""

from typing import get_args

import pytest
import torch

from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.develop.training.augmentation.transform import OPERATIONS, WITHOUT_STRENGTH
from lifelong_core.develop.training.recipe import Operation

declare_missing_operators()
from torchvision.transforms import InterpolationMode  # noqa: E402 - needs torchvision, see above
from torchvision.transforms.v2 import functional as F  # noqa: E402, N812 - its usual name

BILINEAR = InterpolationMode.BILINEAR


def images(channels: int = 3, size: tuple[int, int] = (20, 30)) -> torch.Tensor:
    return torch.randint(
        256, (4, channels, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )


def affine(image: torch.Tensor, **changed) -> torch.Tensor:
    unchanged = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
    return F.affine(image, **(unchanged | changed), interpolation=BILINEAR)


REFERENCES = {
    "identity": lambda image: image,
    "shear_x": lambda image: affine(image, shear=[8.5, 0.0]),
    "shear_y": lambda image: affine(image, shear=[0.0, 8.5]),
    "translate_x": lambda image: affine(image, translate=[4, 0]),  # 0.15 of 30, and half to even
    "translate_y": lambda image: affine(image, translate=[0, 3]),
    "rotate": lambda image: affine(image, angle=15.0),
    "brightness": lambda image: F.adjust_brightness(image, 1.45),
    "contrast": lambda image: F.adjust_contrast(image, 1.45),
    "saturation": lambda image: F.adjust_saturation(image, 1.45),
    "sharpness": lambda image: F.adjust_sharpness(image, 1.45),
    "posterize": lambda image: F.posterize(image, 6),
    "solarize": lambda image: F.solarize(image, 128.0),
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "horizontal_flip": lambda image: image.flip(-1),
    "vertical_flip": lambda image: image.flip(-2),
}
TWO_DIRECTIONS = ["shear_x", "translate_x", "rotate", "brightness", "sharpness"]


def test_there_is_every_operation_of_the_document():
    assert set(OPERATIONS) == set(get_args(Operation)) == {*REFERENCES, "gaussian_blur"}


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_half_of_the_largest_strength(name):
    """Each image alone, so that no operation mixes images."""
    found = OPERATIONS[name](images(), 0.5)
    expected = torch.stack([REFERENCES[name](image) for image in images()])
    assert found.dtype == torch.uint8
    assert torch.equal(found, expected)
    assert (name == "identity") == torch.equal(found, images())


def test_blur_grows_with_the_edge():
    found = OPERATIONS["gaussian_blur"](images(size=(112, 150)), 0.5)
    assert torch.equal(found, F.gaussian_blur(images(size=(112, 150)), [5, 5], [0.5, 0.5]))
    assert not torch.equal(found, images(size=(112, 150)))


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - WITHOUT_STRENGTH))
@pytest.mark.parametrize("channels", [1, 3])
def test_without_strength_nothing_changes(name, channels):
    assert torch.equal(OPERATIONS[name](images(channels), 0.0), images(channels))


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("magnitude", [-1.0, 1.0])
def test_the_largest_strengths_keep_type_and_size(name, channels, magnitude):
    tiny = images(channels, (8, 9))
    found = OPERATIONS[name](tiny, magnitude)
    assert (found.dtype, found.shape) == (torch.uint8, tiny.shape)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_operations_without_strength_are_known(name):
    # Smaller images are hardly blurred.
    image = images(size=(112, 150))
    alike = all(
        torch.equal(OPERATIONS[name](image, 1.0), OPERATIONS[name](image, value)) for value in (0.2, -1)
    )
    assert alike == (name in WITHOUT_STRENGTH)


@pytest.mark.parametrize("name", TWO_DIRECTIONS)
def test_the_two_directions_differ(name):
    assert not torch.equal(OPERATIONS[name](images(), 0.5), OPERATIONS[name](images(), -0.5))
