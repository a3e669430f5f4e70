"""An ONNX graph as a classifier, on the CPU."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false
# onnxruntime has no types.

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.images import decode, preprocess
from lifelong_core.preprocessing import Preprocessing

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

_MOST_IMAGES = 256
"""that the graph gets at once"""


class OnnxClassifier:
    """Runs a graph in batches.

    Args:
        onnx: the file, or its bytes.
        preprocessing: from an image to the input of the graph.
        threads: of ONNX Runtime; None: its own choice.
    """

    def __init__(
        self, onnx: bytes | Path, preprocessing: Preprocessing, *, threads: int | None = None
    ) -> None:
        self.preprocessing = preprocessing
        options = onnxruntime.SessionOptions()
        if threads is not None:
            options.intra_op_num_threads = threads
        content = onnx.as_posix() if isinstance(onnx, Path) else onnx
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name
        self._output = self._session.get_outputs()[0].name

    def logits(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits (n, classes) of preprocessed images (n, C, h, w)."""
        parts = [
            np.asarray(self._run(inputs[begin : begin + _MOST_IMAGES]), dtype=np.float32)
            for begin in range(0, len(inputs), _MOST_IMAGES)
        ]
        return np.concatenate(parts)

    def _run(self, inputs: NDArray[np.float32]) -> Any:
        return self._session.run([self._output], {self._input: inputs})[0]

    def logits_of_file(self, image: bytes, *, maximum_pixels: int = 50_000_000) -> NDArray[np.float32]:
        """Logits (classes,) of an encoded image, decoded and preprocessed as the service does.

        Raises:
            InvalidInputError: not a readable image.
            PayloadTooLargeError: it has more than `maximum_pixels`.
        """
        decoded = decode(image, maximum_pixels=maximum_pixels, target=self.preprocessing)
        return self.logits(
            preprocess(decoded, self.preprocessing, maximum_pixels=maximum_pixels)[np.newaxis]
        )[0]
