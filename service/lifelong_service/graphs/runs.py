"""Runs of a session: with arrays of numpy, or with bound buffers on a GPU."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from lifelong_service.graphs.page_locked import HostMemory

_KEPT_BUFFERS = 16
"""Largest number of idle buffers of one graph: the batch sizes 1, 2, 4, ..., 64 for two threads, and some."""


class Run(Protocol):
    """Runs a graph on a batch; threads may share it."""

    def run(
        self, images: Sequence[NDArray[np.float32]], size: int, options: onnxruntime.RunOptions | None
    ) -> NDArray[Any]:
        """Return the outputs of a batch, as an array that the caller owns.

        Args:
            images: of equal shape, with values in 0..1 before normalisation.
            size: size of the batch, at least the number of images; the last image fills it.
            options: of ONNX Runtime.
        """
        ...


class PlainRun:
    """Runs a session with arrays of numpy.

    Args:
        session: of the graph.
        kind: type of its input.
    """

    def __init__(self, session: onnxruntime.InferenceSession, kind: type[np.generic]) -> None:
        self._session = session
        self._kind = kind
        self._name = session.get_inputs()[0].name

    def run(
        self, images: Sequence[NDArray[np.float32]], size: int, options: onnxruntime.RunOptions | None
    ) -> NDArray[Any]:
        """Return the outputs; see `Run`."""
        batch = np.empty((size, *images[0].shape), self._kind)
        fill(batch, images)
        return np.asarray(self._session.run(None, {self._name: batch}, options)[0])


class BoundRun:
    """Runs a session with buffers that stay: page-locked on the host, one on the device.

    Each thread of a run has buffers of its own, so that threads do not wait for each other.

    Args:
        session: of the graph.
        kind: type of its input.
        device: type of the device in ONNX Runtime: cuda.
        number: of the device.
        memory: allocates the buffers of the host.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        kind: type[np.generic],
        *,
        device: str,
        number: int,
        memory: HostMemory,
    ) -> None:
        self._session = session
        self._kind = kind
        self._device = device
        self._number = number
        self._memory = memory
        self._idle: OrderedDict[int, _Buffers] = OrderedDict()
        self._changing = threading.Lock()

    def run(
        self, images: Sequence[NDArray[np.float32]], size: int, options: onnxruntime.RunOptions | None
    ) -> NDArray[Any]:
        """Return the outputs; see `Run`."""
        shape = (size, *images[0].shape)
        buffers = self._take(shape)
        if buffers is None:
            buffers = _Buffers(self._session, shape, self._kind, self._device, self._number, self._memory)
        outputs = buffers.run(images, options)
        # Not after an exception: the device may still use the buffers of a run that was ended.
        self._keep(buffers)
        return outputs

    def _take(self, shape: tuple[int, ...]) -> "_Buffers | None":
        with self._changing:
            fitting = next((key for key, one in self._idle.items() if one.shape == shape), None)
            return None if fitting is None else self._idle.pop(fitting)

    def _keep(self, buffers: "_Buffers") -> None:
        with self._changing:
            self._idle[id(buffers)] = buffers
            if len(self._idle) > _KEPT_BUFFERS:
                self._idle.popitem(last=False)  # the one that was not used for the longest time


class _Buffers:
    """Buffers of one batch, bound to a session; one thread uses them at a time."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        shape: tuple[int, ...],
        kind: type[np.generic],
        device: str,
        number: int,
        memory: HostMemory,
    ) -> None:
        self.shape = shape
        self._session = session
        self._memory = memory
        self._inputs = memory.empty(shape, kind)
        # By the session's allocator, so that the limit of its memory counts the buffer.
        self._on_device = session.create_ortvalue_from_shape_and_type(list(shape), kind, device, number)
        self._output_name = session.get_outputs()[0].name
        self._outputs: NDArray[Any] | None = None
        self._binding = session.io_binding()
        # A host array would be copied when it is bound, not when the graph runs.
        self._binding.bind_ortvalue_input(session.get_inputs()[0].name, self._on_device)
        self._binding.bind_output(self._output_name, "cpu")

    def run(
        self, images: Sequence[NDArray[np.float32]], options: onnxruntime.RunOptions | None
    ) -> NDArray[Any]:
        fill(self._inputs, images)
        self._on_device.update_inplace(self._inputs)
        self._session.run_with_iobinding(self._binding, options)
        self._binding.synchronize_outputs()
        if self._outputs is not None:
            return self._outputs.copy()
        # The first run tells the shape of the output.
        outputs = np.asarray(self._binding.copy_outputs_to_cpu()[0])
        self._outputs = self._memory.empty(outputs.shape, outputs.dtype.type)
        self._binding.bind_ortvalue_output(
            self._output_name, onnxruntime.OrtValue.ortvalue_from_numpy(self._outputs)
        )
        return outputs.copy()


def fill(batch: NDArray[Any], images: Sequence[NDArray[np.float32]]) -> None:
    """Write images to a batch of the type of the graph's input; the last one fills the rest.

    Grey values of images of 8 bits per channel are exact: they were divided by 255.
    """
    count = len(images)
    if batch.dtype == np.uint8:
        for row, image in zip(batch, images, strict=False):
            np.rint(image * np.float32(255), out=row, casting="unsafe")
    else:
        np.stack(images, out=batch[:count], casting="same_kind")
    batch[count:] = batch[count - 1]
