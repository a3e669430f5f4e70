"""The two classifiers with random weights, their images, and an installation that serves one of them."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.gpu_graphs import jpeg
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.images import model_input
from lifelong_core.store import Scope, Store, register_calibration
from lifelong_core.values.preprocessing import Preprocessing

if TYPE_CHECKING:
    from torch import nn

CLASSES = 5
LOGITS_MODEL = "remote"
"""Model of `/v1/logits`; it runs elsewhere."""
_CASES = 60
"""Calibration cases of each class; their logits are made up, and no time depends on them."""
_ACTOR = "benchmark"


@dataclass(frozen=True)
class Workload:
    """A classifier and its images.

    Attributes:
        name: `tiny`, or an architecture of timm.
        edge: of images and of the input, in pixels.
        images: number of different images.
    """

    name: str
    edge: int
    images: int

    @property
    def preprocessing(self) -> Preprocessing:
        """That of ImageNet, at this size."""
        return Preprocessing.model_validate(
            {
                "resize": {"height": self.edge, "width": self.edge, "interpolation": "bilinear"},
                "mean": [0.485, 0.456, 0.406],
                "standard_deviation": [0.229, 0.224, 0.225],
            }
        )

    def jpegs(self) -> list[bytes]:
        """Different images, the same in every run."""
        return [jpeg(self.edge, seed) for seed in range(self.images)]

    def graph(self, folder: Path) -> Path:
        """The ONNX file in a folder; exported there where it is missing."""
        file = folder / f"{self.name}-{self.edge}.onnx"
        if not file.is_file():
            # In a process of its own: torch would stay in the memory of this one, which measures.
            command = [sys.executable, "-m", "benchmarks.serving.workloads", self.name, str(file)]
            subprocess.run(command, check=True)
        return file


TINY = Workload("tiny", 64, 200)
RESNET = Workload("resnet34", 224, 16)
WORKLOADS = {workload.name: workload for workload in (TINY, RESNET)}


def export(workload: Workload, file: Path) -> None:
    """Write the graph of a classifier with random weights, whose decisions differ between the images."""
    from benchmarks.onnx_parity import random_model
    from lifelong_core.develop.training.export.exported_model import export_onnx

    module = _tiny() if workload.name == TINY.name else random_model(workload.name)
    _spread_logits(module, workload)
    file.write_bytes(export_onnx(module, channels=3, height=workload.edge, width=workload.edge))


def _tiny() -> "nn.Module":
    import torch
    from torch import nn

    torch.manual_seed(0)
    features = (nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
    return nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, CLASSES))


def _spread_logits(module: "nn.Module", workload: Workload) -> None:
    """Scale the last layer: each logit gets mean 0 and standard deviation 1 over the images.

    Else random weights give all images one decision, with probabilities of 0 and 1, and servers that confuse images
    would agree.
    """
    import torch
    from torch import nn

    preprocessing = workload.preprocessing
    pixels = [
        model_input(image, preprocessing, maximum_pixels=workload.edge**2) for image in workload.jpegs()
    ]
    inputs = torch.from_numpy(np.stack(pixels))
    last = [layer for layer in module.modules() if isinstance(layer, nn.Linear)][-1]
    with torch.no_grad():
        logits = module.eval()(inputs)
        mean, deviation = logits.mean(dim=0), logits.std(dim=0)
        last.weight /= deviation[:, None]
        last.bias.copy_((last.bias - mean) / deviation)


def install(folder: Path, workload: Workload, graph: Path) -> str:
    """Make an installation with one promoted model and one external model in `folder / "data"`; return a token.

    The head of the model changes nothing: its probabilities are the softmax of the logits, and it decides for the
    largest one, as the peers do.
    """
    settings = Settings(data_directory=folder / "data")
    Store.migrate(settings.resolved_database_url)
    names = tuple(f"class-{number}" for number in range(CLASSES))
    costs = 1 - np.eye(CLASSES)
    labels = np.tile(np.arange(CLASSES), _CASES)
    noise = np.random.default_rng(0).normal(size=(labels.size, CLASSES))
    labelled = LabeledLogits((2 * np.eye(CLASSES)[labels] + noise).astype(np.float32), labels)
    head = PostProcessingHead(1.0, np.zeros(CLASSES), costs, np.full(CLASSES, 1 / CLASSES), names)
    with Store.from_settings(settings) as store:
        store.group_keys.create(settings.resolved_group_key_file, actor=_ACTOR)
        _, token = store.tokens.create("admin", [Scope.ADMIN], actor=_ACTOR)
        store.tasks.add("task", names, costs.tolist(), actor=_ACTOR)
        model = store.models.add(
            "task",
            "model",
            kind="onnx",
            onnx=graph.read_bytes(),
            preprocessing=workload.preprocessing,
            actor=_ACTOR,
        )
        register_calibration(store, model.reference, labelled, actor=_ACTOR)
        store.heads.publish(model.reference, head, environment=None, actor=_ACTOR)
        remote = store.models.add("task", LOGITS_MODEL, kind="external", actor=_ACTOR)
        register_calibration(store, remote.reference, labelled, actor=_ACTOR)
    return token


if __name__ == "__main__":
    export(WORKLOADS[sys.argv[1]], Path(sys.argv[2]))
