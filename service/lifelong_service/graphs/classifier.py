"""A classifier in ONNX Runtime: its graph is checked once, when it is loaded."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from lifelong_core.arrays import Logits
from lifelong_core.errors import InvalidInputError, UnavailableError
from lifelong_core.preprocessing import Preprocessing
from lifelong_service.graphs.providers import CPU, RECORD, check_providers, choose_providers, provider_of
from lifelong_service.graphs.run_limit import RunLimit
from lifelong_service.graphs.runtime_errors import describe_failure

_INPUT_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_UNKNOWN_EDGE = 64
"""Edge of the trial image in pixels when neither the preprocessing nor the graph fixes it."""

MIXING_TOLERANCE = 1e-3
"""Relative and absolute tolerance of an image's logits between batches (rounding differs)."""
COARSE_MIXING_TOLERANCE = 1e-2
"""The same where products are rounded to 10 bits: half precision, and TF32 of accelerators."""


class GraphTimeoutError(UnavailableError):
    """A run of the graph took longer than the limit."""


@dataclass(frozen=True)
class Classifier:
    """A loaded graph with one image input and one output of logits (N, C).

    For a task with two classes the graph may return one logit z per image, shape (N, 1) or (N,), for the positive
    class 1. It is read as the logits (0, z).
    """

    session: onnxruntime.InferenceSession
    preprocessing: Preprocessing
    input_name: str
    input_type: type[np.generic]
    """uint8: the graph takes grey values 0..255 and normalises them itself"""
    classes: int
    batch_size: int | None
    """Fixed batch size of the graph; None: any."""
    provider: str
    """The ONNX Runtime execution provider that runs most nodes of the graph."""
    limit: RunLimit | None = None
    """Time limit of one call; None: none."""

    def logits(self, inputs: Sequence[NDArray[np.float32]]) -> Logits:
        """Return raw outputs, shape (N, C), for N inputs of equal shape; NaN of the graph is kept.

        Raises:
            InvalidInputError: the graph fails on these inputs.
            GraphTimeoutError: it takes longer than the limit.
        """
        with nullcontext() if self.limit is None else self.limit.limit() as options:
            return self._logits(inputs, options)

    def _logits(
        self, inputs: Sequence[NDArray[np.float32]], options: onnxruntime.RunOptions | None
    ) -> Logits:
        if self.batch_size is not None and len(inputs) > self.batch_size:
            parts = [inputs[i : i + self.batch_size] for i in range(0, len(inputs), self.batch_size)]
            return np.concatenate([self._logits(part, options) for part in parts])
        batch = self._converted(np.stack(inputs))
        if self.batch_size is not None and len(inputs) < self.batch_size:
            filler = np.repeat(batch[-1:], self.batch_size - len(inputs), axis=0)
            batch = np.concatenate([batch, filler])
        outputs = self._run(batch, options)[: len(inputs)]
        if self.classes == 2 and outputs.shape in ((len(inputs),), (len(inputs), 1)):
            outputs = np.pad(outputs.reshape(-1, 1), ((0, 0), (1, 0)))
        if outputs.shape != (len(inputs), self.classes):
            raise InvalidInputError(
                f"the model gave outputs of another shape, expected {(len(inputs), self.classes)}.",
                field="model",
                hint="Export the graph with a free batch axis and one logit per class of the task.",
            )
        return np.ascontiguousarray(outputs, dtype=np.float32)

    def _converted(self, batch: NDArray[np.float32]) -> NDArray[np.generic]:
        if self.input_type is np.uint8:
            # Exact for images of 8 bits per channel: they were divided by 255.
            return np.rint(batch * np.float32(255)).astype(np.uint8)
        return batch.astype(self.input_type, copy=False)

    def _run(
        self, batch: NDArray[np.generic], options: onnxruntime.RunOptions | None
    ) -> NDArray[np.floating]:
        try:
            return np.asarray(self.session.run(None, {self.input_name: batch}, options)[0])
        except Exception as error:  # ONNX Runtime has an exception class for each of its status codes
            if self.limit is not None and options is not None and options.terminate:
                raise GraphTimeoutError(
                    f"the model takes longer than {self.limit.seconds:g} s.",
                    field="image",
                    hint="Try again later; if it always happens with this image, send it to the model's developers.",
                ) from error
            raise InvalidInputError(
                f"the model fails on an input of shape {batch.shape}: {describe_failure(error)}",
                field="image",
                hint="Check that the preprocessing gives the shape that the graph expects.",
            ) from error


def load_classifier(
    graph: Path | bytes,
    preprocessing: Preprocessing,
    *,
    classes: int,
    providers: Sequence[str] = (),
    threads: int = 1,
    limit: RunLimit | None = None,
) -> Classifier:
    """Load a graph, check that it fits the preprocessing and the task, and run it on a grey image and a gradient.

    Args:
        graph: file or content of the ONNX model.
        preprocessing: preprocessing of its images.
        classes: number of classes of the task.
        providers: ONNX Runtime execution providers in order of preference; empty: CUDA when present, else CPU.
        threads: threads within one operator; 0: one per core.
        limit: time limit of later runs; None: no limit. The trial run here is not limited: the first run on an
            accelerator may take long.

    Raises:
        InvalidInputError: the graph cannot be loaded, or does not fit; nothing of it is kept.
        ConfigurationError: a provider is not known, not installed or cannot be started, or runs no node of the graph.
    """
    session = _session(graph, providers, threads)
    classifier = _inspected(session, preprocessing, classes, provider_of(session, providers))
    _check_outputs(classifier, _trial_inputs(session.get_inputs()[0].shape, preprocessing))
    return replace(classifier, limit=limit)


def _session(graph: Path | bytes, providers: Sequence[str], threads: int) -> onnxruntime.InferenceSession:
    chosen = choose_providers(providers)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Spinning idle threads would take processor time from the other workers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry(*RECORD)
    # Errors are raised as exceptions. Printed ones would break the log format and show shapes, and with them the
    # content of weights.
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            graph if isinstance(graph, bytes) else str(graph), sess_options=options, providers=chosen
        )
    except Exception as error:  # as above
        raise InvalidInputError(
            f"ONNX Runtime cannot load the graph: {describe_failure(error)}",
            field="onnx",
            hint="Export it as one self-contained ONNX file (weights inside) of an opset that ONNX Runtime knows.",
        ) from error
    # Otherwise a failed run is silently repeated on the CPU.
    session.disable_fallback()
    check_providers(providers, session.get_providers())
    return session


def _inspected(
    session: onnxruntime.InferenceSession, preprocessing: Preprocessing, classes: int, provider: str
) -> Classifier:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        raise _misfit(f"{len(inputs)} input(s) and {len(outputs)} output(s), expected one of each")
    shape, kind = list(inputs[0].shape), inputs[0].type
    if len(shape) != 4:
        raise _misfit(f"an input of rank {len(shape)}, expected 4 ({preprocessing.layout})")
    if kind not in _INPUT_TYPES:
        raise _misfit(f"an input of type {kind}, expected float32, float16 or uint8")
    if _INPUT_TYPES[kind] is np.uint8 and not preprocessing.keeps_values:
        raise InvalidInputError(
            "the graph takes grey values 0..255 (uint8), but the preprocessing normalises them.",
            field="preprocessing",
            hint="Leave out mean and standard_deviation: such a graph normalises its input itself.",
        )
    channels = shape[1 if preprocessing.layout == "NCHW" else 3]
    if isinstance(channels, int) and channels != preprocessing.channels:
        raise _misfit(f"{channels} input channel(s), but the preprocessing gives {preprocessing.channels}")
    logits = list(outputs[0].shape)
    is_single = classes == 2 and (len(logits) == 1 or logits[1:] == [1])
    if not is_single and (len(logits) != 2 or (isinstance(logits[1], int) and logits[1] != classes)):
        raise _misfit(f"an output of another shape, expected (N, {classes}): one logit per class of the task")
    batch_size = shape[0] if isinstance(shape[0], int) else None
    return Classifier(
        session, preprocessing, inputs[0].name, _INPUT_TYPES[kind], classes, batch_size, provider
    )


def _check_outputs(classifier: Classifier, inputs: Sequence[NDArray[np.float32]]) -> None:
    alone = np.concatenate([classifier.logits([image]) for image in inputs])
    if not np.isfinite(alone[0]).all():
        raise InvalidInputError(
            "the model gives NaN or infinity for a plain grey image.", field="onnx", hint="Check the export."
        )
    if not np.isfinite(alone).all():
        return  # predictions with such outputs are refused; there is nothing to compare
    fine = classifier.input_type is np.float32 and classifier.provider == CPU
    tolerance = MIXING_TOLERANCE if fine else COARSE_MIXING_TOLERANCE
    if classifier.batch_size is None and not np.allclose(
        classifier.logits(inputs), alone, rtol=tolerance, atol=tolerance
    ):
        raise InvalidInputError(
            "the model mixes the images of a batch: the same image got another answer beside another one.",
            field="onnx",
            hint="Export it in evaluation mode (batch normalisation with its learnt statistics).",
        )
    if (alone >= 0).all() and np.allclose(alone.sum(axis=1), 1, rtol=0, atol=1e-4):
        raise InvalidInputError(
            "the model gives probabilities, expected logits.",
            field="onnx",
            hint="Export it without the softmax at its end.",
        )


def _trial_inputs(shape: Sequence[object], preprocessing: Preprocessing) -> list[NDArray[np.float32]]:
    """Return a grey image and a gradient, of the size of the preprocessing, else of the graph, else a small one."""
    first = 2 if preprocessing.layout == "NCHW" else 1
    height, width = (edge if isinstance(edge, int) else _UNKNOWN_EDGE for edge in shape[first : first + 2])
    if preprocessing.centre_crop is not None:
        height, width = preprocessing.centre_crop.height, preprocessing.centre_crop.width
    elif preprocessing.resize is not None and preprocessing.resize.mode == "exact":
        height, width = preprocessing.resize.height, preprocessing.resize.width
    size = (preprocessing.channels, height, width)
    if preprocessing.layout == "NHWC":
        size = (height, width, preprocessing.channels)
    grey = np.full(size, 0.5, dtype=np.float32)
    gradient = np.linspace(0, 1, grey.size, endpoint=False, dtype=np.float32).reshape(size)
    return [grey, gradient]


def _misfit(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"the graph has {what}.", field="onnx", hint="Export it again, or correct task and preprocessing."
    )
