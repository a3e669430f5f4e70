"""A data directory with a small served model and a token, as after `lifelong init` and `lifelong models add`."""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import Scope, Store, register_calibration
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.service import onnx_graphs

CLASS_NAMES = ("benign", "unclear", "malignant")
COSTS = [[0, 1, 1], [1, 0, 1], [5, 5, 0]]
GREY = Preprocessing.model_validate(
    {"colour": "grey", "mean": [0.5], "standard_deviation": [0.5], "resize": {"height": 4, "width": 4}}
)
"""Preprocessing of the served model."""


@dataclass(frozen=True)
class Installation:
    """Where the state is, and who may do everything with it."""

    settings: Settings
    token: str

    def store(self) -> Store:
        return Store.from_settings(self.settings)


def install(folder: Path, database_url: str = "") -> Installation:
    """A migrated database with the models linear (ONNX, promoted) and remote (external)."""
    settings = Settings(data_directory=folder / "data", database_url=database_url)
    Store.migrate(settings.resolved_database_url)
    with Store.from_settings(settings) as store:
        store.group_keys.create(settings.resolved_group_key_file, actor="test")
        _, secret = store.tokens.create("admin", [Scope.ADMIN], actor="test")
        store.tasks.add("skin", CLASS_NAMES, COSTS, actor="test")
        model = store.models.add(
            "skin", "linear", kind="onnx", onnx=onnx_graphs.linear(), preprocessing=GREY, actor="test"
        )
        register_calibration(store, model.reference, labelled_logits(), actor="test")
        remote = store.models.add("skin", "remote", kind="external", actor="test")
        register_calibration(store, remote.reference, labelled_logits(), actor="test")
    return Installation(settings, secret)


def labelled_logits() -> LabeledLogits:
    """A calibration set of three classes."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(3), 60)
    logits = (np.eye(3)[labels] * 2 + rng.normal(size=(180, 3))).astype(np.float32)
    return LabeledLogits(logits, labels)


def plain_image(level: int, edge: int = onnx_graphs.EDGE) -> bytes:
    """A PNG of one grey level."""
    file = BytesIO()
    Image.new("L", (edge, edge), level).save(file, "PNG")
    return file.getvalue()


def image(kind: str = "PNG", edge: int = 32) -> bytes:
    """A noisy grey image."""
    file = BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (edge, edge), dtype=np.uint8)
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()
