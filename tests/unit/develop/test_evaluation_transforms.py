"""The documents transform an image as timm's and torchvision's own transforms do."""

from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from lifelong_core.develop.evaluation_transforms import (
    TimmDataConfig,
    declare_missing_operators,
    describe_timm_transform,
    describe_torchvision_transform,
    read_timm_data_config,
    timm_data_config,
)
from lifelong_core.images import preprocess
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

SIZES = [(256, 256), (320, 200), (200, 320), (223, 225), (1000, 130), (97, 601), (224, 224), (31, 40)]
"""Width and height: square, landscape, portrait, nearly the target, elongated, enlarged."""

TOLERANCE = 1e-6


def photograph(size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    """Smooth structures and noise: resampling shows in both."""
    width, height = size
    rng = np.random.default_rng(width * height)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 80 * np.sin(x / period) * np.cos(y / (period + 3)) for period in (5.0, 11.0, 23.0)]
    pixels = np.stack(waves, axis=-1) + rng.normal(scale=20, size=(height, width, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).convert(mode)


def largest_difference(document: dict[str, Any], transform: Any, image: Image.Image) -> float:
    ours = preprocess(image, Preprocessing.model_validate(document))
    theirs = transform(image).numpy()
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max())


def timm_transform(config: TimmDataConfig) -> Any:
    declare_missing_operators()
    from timm.data import create_transform

    return create_transform(**config.model_dump(), is_training=False)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "name",
    [
        "resnet34",  # crop_pct 0.95, bicubic
        "resnet18.tv_in1k",  # 0.875, bilinear
        "vit_base_patch16_224.augreg_in21k",  # 0.9, mean 0.5
        "convnext_base.clip_laion2b_augreg_ft_in12k_in1k_384",  # squash, 384
    ],
)
def test_the_service_gives_timms_tensor(name: str, size: tuple[int, int]) -> None:
    config = timm_data_config(name)
    document = describe_timm_transform(config)
    assert largest_difference(document, timm_transform(config), photograph(size)) < TOLERANCE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "config",
    [
        TimmDataConfig(crop_mode="squash", crop_pct=0.9),
        TimmDataConfig(crop_mode="squash", crop_pct=1, input_size=(3, 160, 224)),
        TimmDataConfig(crop_mode="squash", crop_pct=0.87, input_size=(3, 161, 223), interpolation="lanczos"),
        TimmDataConfig(crop_pct=1, interpolation="nearest"),
        TimmDataConfig(crop_pct=0.965, input_size=(3, 97, 97)),
    ],
    ids=["squash", "squash-oblong", "squash-oblong-crop", "no-crop", "odd"],
)
def test_other_data_configs(config: TimmDataConfig, size: tuple[int, int]) -> None:
    document = describe_timm_transform(config)
    assert largest_difference(document, timm_transform(config), photograph(size)) < TOLERANCE


@pytest.mark.parametrize("size", SIZES)
def test_grey_images(size: tuple[int, int]) -> None:
    config = TimmDataConfig(input_size=(1, 128, 128), mean=(0.45,), std=(0.22,))
    document = describe_timm_transform(config)
    assert document["colour"] == "grey"
    assert largest_difference(document, timm_transform(config), photograph(size, "L")) < TOLERANCE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["resnet34", "EfficientNet_B0_Weights.IMAGENET1K_V1", "swin_t"])
def test_the_service_gives_torchvisions_tensor(name: str, size: tuple[int, int]) -> None:
    document = describe_torchvision_transform(name)
    from torchvision import models

    weights = models.get_weight(name) if "." in name else models.get_model_weights(name)["DEFAULT"]
    assert largest_difference(document, weights.transforms(), photograph(size)) < TOLERANCE


def test_another_size_keeps_the_share_that_is_cropped() -> None:
    document = describe_timm_transform(timm_data_config("resnet34", size=512))
    assert document["resize"]["height"] == 538  # floor(512 / 0.95)
    assert document["centre_crop"] == {"height": 512, "width": 512}


def test_size_for_tests() -> None:
    assert timm_data_config("resnet34", test_size=True).input_size == (3, 288, 288)


@pytest.mark.parametrize(
    ("config", "field", "why"),
    [
        (TimmDataConfig(crop_mode="border"), "crop_mode", "pads the image"),
        (TimmDataConfig(crop_mode="corner"), "crop_mode", "corner"),
        (TimmDataConfig(input_size=(3, 160, 224)), "input_size", "160 x 224"),
        (TimmDataConfig(crop_pct=1.1), "crop_pct", "pads the image"),
        (TimmDataConfig(interpolation="random"), "interpolation", "random"),
        (TimmDataConfig(input_size=(4, 224, 224)), "input_size", "4 channels"),
        (TimmDataConfig(input_size=(1, 224, 224)), "mean", "3 values of mean"),
    ],
)
def test_what_cannot_be_represented_is_refused(config: TimmDataConfig, field: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why) as caught:
        describe_timm_transform(config)
    assert caught.value.field == field
    assert caught.value.hint


def test_every_pretrained_config_of_timm_without_padding_is_represented() -> None:
    declare_missing_operators()
    import timm

    configs = {name: timm_data_config(name) for name in timm.list_pretrained()}
    padding = [name for name, config in configs.items() if config.crop_pct > 1]
    for name in configs.keys() - padding:
        Preprocessing.model_validate(describe_timm_transform(configs[name]))
    assert len(padding) < 0.01 * len(configs), padding


@pytest.mark.parametrize(
    ("name", "hint"), [("resnet43", "resnet34"), ("resnet34.a1_in2k", "resnet34.a1_in1k")]
)
def test_an_unknown_model_of_timm(name: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match="no model") as caught:
        timm_data_config(name)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("name", ["resnet43", "ResNet34_Weights.V9", "fasterrcnn_resnet50_fpn"])
def test_an_unknown_classifier_of_torchvision(name: str) -> None:
    with pytest.raises(InvalidInputError, match="no model"):
        describe_torchvision_transform(name)


def test_config_of_a_model_card() -> None:
    card = {
        "architecture": "resnet34",
        "num_classes": 2,
        "pretrained_cfg": {"input_size": [3, 288, 288], "crop_pct": 0.9, "pool_size": [9, 9], "mean": None},
    }
    assert read_timm_data_config(card) == TimmDataConfig(input_size=(3, 288, 288), crop_pct=0.9)


def test_a_misspelt_field_is_not_ignored() -> None:
    with pytest.raises(ValidationError, match="crop_mod"):
        read_timm_data_config({"crop_mod": "squash"})
