"""A trained model as a graph that is compared with it on real images."""
# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# The types of torch are incomplete.

import copy
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.evaluation_transforms import describe_timm_transform, timm_data_config
from lifelong_core.develop.features.sources.entry import ImageSource
from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.export.onnx_classifier import OnnxClassifier
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.develop.training.result import Parity
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_core.values.preprocessing import Preprocessing

_SERVED_IMAGES = 8
"""whose logits are compared through the service's own way from the file"""

INPUT, OUTPUT = "image", "logits"
_MOST_IMAGES = 4096

RELATIVE_TOLERANCE = 1e-4
"""Of the largest logit, at least 1: float32 sums of some ten thousand terms in another order differ by about a tenth
of it; a wrong operator, or another normalisation, differs by far more."""
MOST_IMAGES = 64


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


def export_onnx(module: nn.Module, *, channels: int, height: int, width: int) -> bytes:
    """The graph of a classifier: input `image` (N, C, H, W), output `logits` (N, classes), any N, weights inside.

    Args:
        module: gives logits; it is not changed.
        channels: C.
        height: H.
        width: W.

    Raises:
        InvalidInputError: torch cannot express the model as a graph.
    """
    exported = copy.deepcopy(module).eval().float().cpu()
    # Two images: a batch of one would become a constant of the graph.
    example = torch.zeros(2, channels, height, width)
    level = logging.getLogger("torch").level
    with warnings.catch_warnings():
        # The exporter warns about its own internals; nothing in it is about this graph.
        warnings.simplefilter("ignore")
        logging.getLogger("torch").setLevel(logging.CRITICAL)
        try:
            program = torch.onnx.export(
                exported,
                (example,),
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes=({0: torch.export.Dim("images", min=1, max=_MOST_IMAGES)},),
                dynamo=True,
                verbose=False,
            )
        except Exception as error:  # the exporter raises errors of many kinds
            raise InvalidInputError(
                f"the model cannot be exported as an ONNX graph of {channels} x {height} x {width} images"
                f" ({type(error).__name__}).",
                field="architecture",
                hint="Choose another architecture, or another image_size.",
            ) from error
        finally:
            logging.getLogger("torch").setLevel(level)
    if program is None:
        raise TypeError("the exporter returned no graph")
    return program.model_proto.SerializeToString()


def check_parity(
    module: nn.Module,
    classifier: OnnxClassifier,
    inputs: NDArray[np.float32],
    through_service: Sequence[Callable[[], NDArray[np.float32]]] = (),
) -> Parity:
    """Compare the logits of torch and of the exported graph.

    Args:
        module: the trained model.
        classifier: the exported graph.
        inputs: (n, C, h, w), preprocessed by training.
        through_service: for the first of these images, the logits of the graph by the service's own way from the file.

    Raises:
        InvalidInputError: they differ by more than the tolerance, or those of torch are not finite.
    """
    reference = copy.deepcopy(module).eval().float().cpu()
    with torch.inference_mode():
        expected = reference(torch.from_numpy(inputs)).numpy()
    if not np.isfinite(expected).all():
        raise InvalidInputError(
            "the trained model gives logits that are not finite.",
            field="learning_rate",
            hint="Give a lower learning rate in the recipe.",
        )
    # Once together and once alone: an axis that was fixed at export shows in one of them.
    found = classifier.logits(inputs)
    alone = np.concatenate([classifier.logits(inputs[at : at + 1]) for at in range(min(4, len(inputs)))])
    difference = max(_difference(expected, found), _difference(expected[: len(alone)], alone))
    served = [logits() for logits in through_service]
    difference_served = _difference(expected[: len(served)], np.array(served)) if served else 0.0
    worst, tolerance = max(difference, difference_served), _tolerance(expected)
    if worst > tolerance:
        raise InvalidInputError(
            f"the exported graph gives other logits than the trained model: they differ by {worst:.3g}, at most"
            f" {tolerance:.3g} is allowed.",
            field="architecture",
            hint="The model was not registered. Choose another architecture, and report this one.",
        )
    return Parity(
        images=len(inputs),
        largest_difference=difference,
        largest_difference_through_service=difference_served,
        tolerance=tolerance,
    )


def _tolerance(expected: NDArray[np.float32]) -> float:
    return RELATIVE_TOLERANCE * max(1.0, float(np.abs(expected).max()))


def _difference(expected: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """Largest absolute difference; infinite where a value is not finite."""
    difference = np.abs(expected.astype(np.float64) - found)
    return float(difference.max()) if np.isfinite(difference).all() else float("inf")


def training_preprocessing(recipe: Recipe) -> Preprocessing:
    """The preprocessing with which a model of this recipe is trained, evaluated and served.

    Raises:
        InvalidInputError: timm has no such architecture, or its transform has a step that preprocessing lacks.
    """
    try:
        config = timm_data_config(recipe.architecture, size=recipe.image_size)
    except InvalidInputError as error:
        error.field = error.field or "architecture"
        raise
    if recipe.colour == "grey":
        _, height, width = config.input_size
        config = config.model_copy(
            update={
                "input_size": (1, height, width),
                "mean": (_average(config.mean),),
                "std": (_average(config.std),),
            }
        )
    return Preprocessing.model_validate(describe_timm_transform(config))


def _average(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)
