"""A torch classifier as an ONNX graph in one file."""
# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# The types of torch are incomplete.

import copy
import logging
import warnings

import torch
from torch import nn

from lifelong_core.values.errors import InvalidInputError

INPUT, OUTPUT = "image", "logits"
_MOST_IMAGES = 4096


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
