"""What the peers do with images: our decoding and preprocessing, one run of the graph, softmax, a small document.

A peer reads graph, preprocessing and threads from variables of its environment.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from lifelong_core.images import model_input, preprocess
from lifelong_core.values.arrays import softmax
from lifelong_core.values.preprocessing import Preprocessing

MAXIMUM_PIXELS = 16_777_216
"""As the service's default."""
_GRAPH, _PREPROCESSING, _THREADS = "PEER_GRAPH", "PEER_PREPROCESSING", "PEER_THREADS"


def environment_of(graph: Path, preprocessing: Preprocessing, threads: int) -> Mapping[str, str]:
    """The variables of a peer."""
    return {_GRAPH: str(graph), _PREPROCESSING: preprocessing.model_dump_json(), _THREADS: str(threads)}


def bare_session(graph: Path, threads: int) -> onnxruntime.InferenceSession:
    """A session of ONNX Runtime on the CPU with its default options, but for the number of threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(graph), sess_options=options, providers=["CPUExecutionProvider"])


@dataclass(frozen=True)
class Classification:
    """A loaded graph with its preprocessing."""

    session: onnxruntime.InferenceSession
    preprocessing: Preprocessing

    @classmethod
    def from_environment(cls) -> Self:
        """The one of the variables."""
        session = bare_session(Path(os.environ[_GRAPH]), int(os.environ[_THREADS]))
        return cls(session, Preprocessing.model_validate_json(os.environ[_PREPROCESSING]))

    def pixels(self, data: bytes) -> NDArray[np.float32]:
        """The model's input for the bytes of one image."""
        return model_input(data, self.preprocessing, maximum_pixels=MAXIMUM_PIXELS)

    def input(self, image: Image.Image) -> NDArray[np.float32]:
        """The model's input for one opened image."""
        return preprocess(image, self.preprocessing, maximum_pixels=MAXIMUM_PIXELS)

    def logits(self, inputs: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Logits (N, C) of N inputs, by one run of the graph."""
        return np.asarray(self.session.run(None, {self.session.get_inputs()[0].name: np.stack(inputs)})[0])

    def documents(self, inputs: Sequence[NDArray[np.float32]]) -> list[dict[str, Any]]:
        """Decision and probabilities of each input."""
        probabilities = softmax(self.logits(inputs).astype(np.float64))
        decisions = probabilities.argmax(axis=1).tolist()
        return [
            {"decision": decision, "probabilities": row}
            for decision, row in zip(decisions, probabilities.tolist(), strict=True)
        ]
