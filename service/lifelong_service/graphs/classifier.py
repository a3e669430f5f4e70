"""A classifier in ONNX Runtime: from images to logits."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import InvalidInputError, LifelongError, UnavailableError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.captures import DEVICE
from lifelong_service.graphs.limits import RunLimit
from lifelong_service.graphs.runs import Run
from lifelong_service.graphs.runtime_errors import describe_failure, device_failure, hint_for


class GraphTimeoutError(UnavailableError):
    """A run of the graph took longer than the limit."""


@dataclass(frozen=True)
class Classifier:
    """A loaded graph with one image input and one output of logits (N, C).

    For a task with two classes the graph may return one logit z per image, shape (N, 1) or (N,), for the positive
    class 1. It is read as the logits (0, z).
    """

    runs: Run
    preprocessing: Preprocessing
    classes: int
    batch_sizes: tuple[int, ...] | None
    """Sizes of the batches that run, ascending; other batches are split and filled. None: any."""
    has_fixed_batch: bool
    """Whether the graph itself takes one batch size only."""
    trial_shape: tuple[int, ...]
    """Shape of the images with which the graph was tried."""
    provider: str
    """The ONNX Runtime execution provider that runs most nodes of the graph."""
    preprocessing_digest: str
    """of `preprocessing` in this installation"""
    unused_gpu: str | None = None
    """Why the CPU runs the graph although CUDA is installed; None: there is nothing to tell."""
    is_captured: bool = False
    """Whether a GPU replays captured kernels."""
    uncaptured: str | None = None
    """Why CUDA captures no kernels; None: it does, or does not run the graph."""
    limit: RunLimit | None = None
    """Time limit of one call; None: none."""
    model: str = ""
    """Reference of the model, for a run that hangs."""

    def logits(self, inputs: Sequence[NDArray[np.float32]]) -> Logits:
        """Return raw outputs, shape (N, C), for N inputs of equal shape; NaN of the graph is kept.

        Threads may call it at once.

        Raises:
            InvalidInputError: the graph fails on these inputs.
            GraphTimeoutError: it takes longer than the limit.
            UnavailableError: the GPU fails.
            ConfigurationError: the host cannot lock memory for the batch.
        """
        with nullcontext() if self.limit is None else self.limit.limit(self.model) as options:
            return self._logits(inputs, options)

    def _logits(
        self, inputs: Sequence[NDArray[np.float32]], options: onnxruntime.RunOptions | None
    ) -> Logits:
        sizes = self.batch_sizes
        if sizes is not None and len(inputs) > sizes[-1]:
            parts = [inputs[i : i + sizes[-1]] for i in range(0, len(inputs), sizes[-1])]
            return np.concatenate([self._logits(part, options) for part in parts])
        size = len(inputs) if sizes is None else next(size for size in sizes if size >= len(inputs))
        outputs = self._run(inputs, size, options)[: len(inputs)]
        if self.classes == 2 and outputs.shape in ((len(inputs),), (len(inputs), 1)):
            outputs = np.pad(outputs.reshape(-1, 1), ((0, 0), (1, 0)))
        if outputs.shape != (len(inputs), self.classes):
            raise InvalidInputError(
                f"the model gave outputs of another shape, expected {(len(inputs), self.classes)}.",
                field="model",
                hint="Export the graph with a free batch axis and one logit per class of the task.",
            )
        return np.ascontiguousarray(outputs, dtype=np.float32)

    def _run(
        self, inputs: Sequence[NDArray[np.float32]], size: int, options: onnxruntime.RunOptions | None
    ) -> NDArray[np.floating]:
        try:
            return self.runs.run(inputs, size, options)
        except LifelongError:
            raise
        except Exception as error:  # ONNX Runtime has an exception class for each of its status codes
            if self.limit is not None and options is not None and options.terminate:
                raise GraphTimeoutError(
                    f"the model takes longer than {self.limit.seconds:g} s.",
                    field="image",
                    hint="Try again later; if it always happens with this image, send it to the model's developers.",
                ) from error
            if (failure := device_failure(error)) is not None and self._fails_always():
                DEVICE.failure = f"the GPU fails: {failure}"
                raise UnavailableError(
                    f"{DEVICE.failure}.", hint="Try again: this worker is replaced."
                ) from error
            shape = (size, *inputs[0].shape)
            raise InvalidInputError(
                f"the model fails on an input of shape {shape}: {describe_failure(error)}",
                field="image",
                hint=hint_for(error, "Check that the preprocessing gives the shape that the graph expects."),
            ) from error

    def _fails_always(self) -> bool:
        """Whether the GPU fails for the image with which the graph was tried, too: then its context is broken."""
        size = 1 if self.batch_sizes is None else self.batch_sizes[0]
        try:
            self.runs.run([np.full(self.trial_shape, 0.5, np.float32)], size, None)
        except Exception as error:  # noqa: BLE001 - as above
            return device_failure(error) is not None
        return False
