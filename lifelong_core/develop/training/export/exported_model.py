"""A trained model as a graph that is compared with it on real images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.features.sources.entry import ImageSource
from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.export.onnx_classifier import OnnxClassifier
from lifelong_core.develop.training.export.onnx_export import export_onnx
from lifelong_core.develop.training.export.parity import MOST_IMAGES, check_parity
from lifelong_core.develop.training.result import Parity
from lifelong_core.values.errors import LifelongError

_SERVED_IMAGES = 8
"""whose logits are compared through the service's own way from the file"""


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """A graph that gives the logits of the trained model."""

    onnx: bytes
    classifier: OnnxClassifier
    parity: Parity


def export_model(module: nn.Module, images: ImageSource, prepared: PreparedImages) -> ExportedModel:
    """Export a model, and compare it with its graph on images of the test split.

    Args:
        module: gives logits.
        images: source of the prepared images.
        prepared: they have the split `test`.

    Raises:
        InvalidInputError: torch cannot export the model, or the graph gives other logits.
    """
    preprocessing = prepared.preprocessing
    height, width = prepared.input_size
    onnx = export_onnx(module, channels=preprocessing.channels, height=height, width=width)
    classifier = OnnxClassifier(onnx, preprocessing)
    positions: list[int] = prepared.splits["test"][:MOST_IMAGES].tolist()
    files = _files(images, [prepared.names[at] for at in positions])
    served = [at for at in positions if prepared.names[at] in files]
    ordered = [*served, *(at for at in positions if at not in served)]
    inputs = prepared.inputs(np.array(ordered, dtype=np.int64))
    ways = [_service_way(classifier, files[prepared.names[at]]) for at in served]
    return ExportedModel(onnx, classifier, check_parity(module, classifier, inputs, ways))


def _service_way(classifier: OnnxClassifier, content: bytes) -> Callable[[], NDArray[np.float32]]:
    return lambda: classifier.logits_of_file(content)


def _files(images: ImageSource, names: Sequence[str]) -> dict[str, bytes]:
    """Contents of the first image files of these names; frames of DICOM files are no image files."""
    wanted = set(names)
    listed = [one for one in images.entries() if one is not None and one.frame is None and one.name in wanted]
    found: dict[str, bytes] = {}
    for entry, file in images.read(listed[:_SERVED_IMAGES]):
        if not isinstance(file, LifelongError):
            with file:
                found[entry.name] = file.read()
    return found
