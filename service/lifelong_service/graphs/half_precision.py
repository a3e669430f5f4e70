"""Conversion of a graph to half precision (float16), and what it does to the logits.

Only the process that checks graphs imports this module: a serving process never imports `onnx`. The converted graph is
what is stored: every calibration set of the model is computed with it.
"""

from typing import Final

import numpy as np
import onnx
from onnxruntime.transformers.float16 import convert_float_to_float16

from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.graphs.provider_options import HALF, PRECISION
from lifelong_service.graphs.trial_images import random_colours

COMPARED_IMAGES: Final = 16
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
    images = random_colours(converted.trial_shape, preprocessing, COMPARED_IMAGES)
    logits = converted.logits(images)
    if not np.isfinite(logits).all():
        raise InvalidInputError(
            "in half precision the model gives NaN or infinity: values exceed 65,504.",
            field=_FIELD,
            hint="Add it as it is, without half precision.",
        )
    return float(np.abs(original.logits(images) - logits).max())
