"""A small backbone with random weights, an extractor reference for it, and images that are drawn."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lifelong_core.develop.features.backbone import Backbone, load_backbone
from lifelong_core.develop.features.reference import make_extractor_reference, thesis_preprocessing
from lifelong_core.develop.fingerprints.extractor import ExtractorReference

ARCHITECTURE = "test_resnet"


def draw_images(
    folder: Path, count: int, *, seed: int = 0, classes: Sequence[str] = ("",), edge: int = 20
) -> None:
    """Grey PNG files: blobs whose place depends on the class, plus noise."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        place = index % len(classes)
        pixels = rng.normal(90, 30, (edge, edge))
        pixels[place * 4 : place * 4 + 6, 3:9] += 90
        file = folder / classes[place] / f"{index:04}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file)


@pytest.fixture(scope="session")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights of `ARCHITECTURE` with its classifier; nothing is zero, so that all layers matter."""
    from timm import create_model

    torch.manual_seed(0)
    state = create_model(ARCHITECTURE).state_dict()
    for name, tensor in state.items():
        if name.endswith("weight") and tensor.ndim == 1:
            tensor.copy_(torch.rand(tensor.shape) + 0.5)
    file = tmp_path_factory.mktemp("weights") / "weights.pth"
    torch.save(state, file)
    return file


@pytest.fixture(scope="session")
def backbone(weights_file: Path) -> Backbone:
    return load_backbone(ARCHITECTURE, weights_file, device="cpu")


@pytest.fixture(scope="session")
def extractor(backbone: Backbone, tmp_path_factory: pytest.TempPathFactory) -> ExtractorReference:
    folder = tmp_path_factory.mktemp("reference")
    draw_images(folder, 40)
    return make_extractor_reference(
        folder, backbone, names=("drawn",), preprocessing=thesis_preprocessing(ARCHITECTURE, edge=32)
    )
