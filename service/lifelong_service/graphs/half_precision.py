"""Conversion of a graph to half precision (float16), and what it does to the logits.

Only the process that checks graphs imports this module: a serving process never imports `onnx`. The converted graph is
what is stored: every calibration set of the model is computed with it.
"""

from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.transformers.float16 import convert_float_to_float16

from lifelong_core.errors import InvalidInputError
from lifelong_core.preprocessing import Preprocessing
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.graphs.provider_options import HALF, PRECISION

COMPARED_IMAGES: Final = 16
_BLOCKS: Final = 8
"""Blocks of one colour along an edge of a compared image."""
_FIELD: Final = "precision"


def to_half_precision(content: bytes) -> bytes:
    """Return a graph that computes in float16 and still takes and gives float32.

    Args:
        content: a self-contained ONNX file.

    Raises:
        InvalidInputError: it has no float32 weights, or cannot be converted.
    """
    model = onnx.ModelProto.FromString(content)
    if not any(tensor.data_type == onnx.TensorProto.FLOAT for tensor in model.graph.initializer):
        raise InvalidInputError(
            "the graph has no float32 weights.", field=_FIELD, hint="Add it as it is, without half precision."
        )
    try:
        converted = convert_float_to_float16(model, keep_io_types=True)
    except Exception as error:  # the converter raises whatever it meets in an unusual graph
        raise InvalidInputError(
            f"the graph cannot be converted to half precision ({type(error).__name__}).",
            field=_FIELD,
            hint="Export it in half precision (module.half()), or add it as it is.",
        ) from error
    converted.metadata_props.add(key=PRECISION, value=HALF)
    return converted.SerializeToString()


def largest_difference(original: Classifier, converted: Classifier, preprocessing: Preprocessing) -> float:
    """Return the largest absolute difference of a logit over images of random colours.

    Args:
        original: in float32.
        converted: in half precision.
        preprocessing: of the images.

    Raises:
        InvalidInputError: a logit in half precision is not finite.
    """
    images = _images(converted.trial_shape, preprocessing)
    found = converted.logits(images)
    if not np.isfinite(found).all():
        raise InvalidInputError(
            "in half precision the model gives NaN or infinity: values exceed 65,504.",
            field=_FIELD,
            hint="Add it as it is, without half precision.",
        )
    return float(np.abs(original.logits(images) - found).max())


def _images(shape: tuple[int, ...], preprocessing: Preprocessing) -> list[NDArray[np.float32]]:
    """Images of coloured blocks, normalised as the preprocessing does."""
    rng = np.random.default_rng(0)
    height, width = shape[:2] if preprocessing.layout == "NHWC" else shape[1:]
    rows, columns = (np.arange(edge) * _BLOCKS // edge for edge in (height, width))
    images: list[NDArray[np.float32]] = []
    for _ in range(COMPARED_IMAGES):
        colours = rng.random((_BLOCKS, _BLOCKS, preprocessing.channels))
        pixels = (colours[rows][:, columns] - preprocessing.mean) / preprocessing.standard_deviation
        pixels = pixels if preprocessing.layout == "NHWC" else pixels.transpose(2, 0, 1)
        images.append(np.ascontiguousarray(pixels, dtype=np.float32))
    return images
