"""A small backbone with random weights, and an extractor reference for it."""

from pathlib import Path

import pytest

from lifelong_core.develop.features.backbone import Backbone, load_backbone
from lifelong_core.develop.features.reference import make_extractor_reference, thesis_preprocessing
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from tests.unit.develop.features.drawn import ARCHITECTURE, EDGE, draw_images, write_weights


@pytest.fixture(scope="session")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("weights") / "weights.pth"
    write_weights(file)
    return file


@pytest.fixture(scope="session")
def backbone(weights_file: Path) -> Backbone:
    return load_backbone(ARCHITECTURE, weights_file, device="cpu")


@pytest.fixture(scope="session")
def extractor(backbone: Backbone, tmp_path_factory: pytest.TempPathFactory) -> ExtractorReference:
    folder = tmp_path_factory.mktemp("reference")
    draw_images(folder, 40)
    return make_extractor_reference(
        folder, backbone, names=("drawn",), preprocessing=thesis_preprocessing(ARCHITECTURE, edge=EDGE)
    )
