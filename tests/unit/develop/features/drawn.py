"""Drawn images and random weights of a small backbone, for tests of features and of the command line."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from lifelong_core.develop.evaluation_transforms import declare_missing_operators

ARCHITECTURE = "test_resnet"
EDGE = 32


def draw_images(folder: Path, count: int, *, seed: int = 0, classes: Sequence[str] = ("",)) -> None:
    """Grey PNG files of 20 x 20 pixels: a blob whose place depends on the class, and noise."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        place = index % len(classes)
        pixels = rng.normal(90, 30, (20, 20))
        pixels[place * 4 : place * 4 + 6, 3:9] += 90
        file = folder / classes[place] / f"{index:04}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file)


def write_weights(file: Path) -> None:
    """Weights of `ARCHITECTURE` with its classifier; no scale is zero, so that all layers matter."""
    declare_missing_operators()
    from timm import create_model

    torch.manual_seed(0)
    state = create_model(ARCHITECTURE).state_dict()
    for name, tensor in state.items():
        if name.endswith("weight") and tensor.ndim == 1:
            tensor.copy_(torch.rand(tensor.shape) + 0.5)
    torch.save(state, file)
