"""A small backbone with random weights, and an extractor reference for it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lifelong_core.develop.fingerprints.extractor import ExtractorReference

if TYPE_CHECKING:
    from lifelong_core.develop.features.backbone import Backbone

# Imported where used: tests on a Ray cluster use these fixtures, and importing torch takes seconds.


@pytest.fixture(scope="session")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.unit.develop.features.drawn import write_weights

    file = tmp_path_factory.mktemp("weights") / "weights.pth"
    write_weights(file)
    return file


@pytest.fixture(scope="session")
def backbone(weights_file: Path) -> "Backbone":
    from lifelong_core.develop.features.backbone import load_backbone
    from tests.unit.develop.features.drawn import ARCHITECTURE

    return load_backbone(ARCHITECTURE, weights_file, device="cpu")


@pytest.fixture(scope="session")
def extractor(backbone: "Backbone", tmp_path_factory: pytest.TempPathFactory) -> ExtractorReference:
    from lifelong_core.develop.features.reference import make_extractor_reference, thesis_preprocessing
    from tests.unit.develop.features.drawn import ARCHITECTURE, EDGE, draw_images

    folder = tmp_path_factory.mktemp("reference")
    draw_images(folder, 40)
    return make_extractor_reference(
        folder, backbone, names=("drawn",), preprocessing=thesis_preprocessing(ARCHITECTURE, edge=EDGE)
    )
