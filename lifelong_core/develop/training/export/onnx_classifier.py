"""An ONNX graph as a classifier, on the CPU."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false
# onnxruntime has no types.

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.images import model_input
from lifelong_core.values.preprocessing import Preprocessing

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

_MOST_IMAGES = 256
"""that the graph gets at once"""
_HALF, _BYTES = "tensor(float16)", "tensor(uint8)"
"""Types of the input beside float32."""


class OnnxClassifier:
    """Runs a graph in batches: any that the service serves, also with another input type or a fixed batch size.

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
        given = self._session.get_inputs()[0]
        self._input, self._type = given.name, given.type
        fixed = given.shape[0] if given.shape else None
        self._batch_size: int | None = fixed if isinstance(fixed, int) else None
        self._output = self._session.get_outputs()[0].name

    def logits(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits (n, classes) of preprocessed images (n, C, h, w); one logit z of a binary graph is read as (0, z)."""
        at_once = self._batch_size or _MOST_IMAGES
        parts = [
            np.asarray(self._run(inputs[begin : begin + at_once]), dtype=np.float32)
            for begin in range(0, len(inputs), at_once)
        ]
        found = np.concatenate(parts)
        return np.pad(found.reshape(-1, 1), ((0, 0), (1, 0))) if found.size == len(inputs) else found

    def _run(self, inputs: NDArray[np.float32]) -> Any:
        missing = (self._batch_size or len(inputs)) - len(inputs)
        filled = np.concatenate([inputs, np.repeat(inputs[-1:], missing, axis=0)]) if missing else inputs
        found: Any = self._session.run([self._output], {self._input: self._converted(filled)})[0]
        return found[: len(inputs)]

    def _converted(self, inputs: NDArray[np.float32]) -> NDArray[np.generic]:
        if self._type == _BYTES:  # the graph takes grey values and normalises them itself
            return np.rint(inputs * np.float32(255)).astype(np.uint8)
        return inputs.astype(np.float16) if self._type == _HALF else inputs

    def logits_of_file(self, image: bytes, *, maximum_pixels: int = 50_000_000) -> NDArray[np.float32]:
        """Logits (classes,) of an encoded image, decoded and preprocessed as the service does.

        Raises:
            InvalidInputError: not a readable image.
            PayloadTooLargeError: it has more than `maximum_pixels`.
        """
        pixels = model_input(image, self.preprocessing, maximum_pixels=maximum_pixels)
        return self.logits(pixels[np.newaxis])[0]
