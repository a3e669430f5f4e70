"""Runs of a session: with arrays of numpy, or with bound buffers and captured kernels on a GPU."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from lifelong_service.graphs.captures import DEVICE, CaptureError, GraphThread
from lifelong_service.graphs.page_locked import HostMemory
from lifelong_service.graphs.runtime_errors import lacks_memory

_KEPT_BUFFERS = 16
"""Largest number of shapes of one graph whose buffers stay, beside those that were captured."""
_CAPTURE_ID = "gpu_graph_id"
"""ONNX Runtime's name of the entry in the options of a run that says which captured kernels it replays."""
_NOT_CAPTURED = "-1"
_DEVICE = "cuda"
"""ONNX Runtime's name of the type of the device."""
_TOLERANCE = 1e-3
"""Relative and absolute; the same kernels run, but some of them sum in any order."""


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
    """Runs a session with buffers that stay: page-locked on the host, and one on the device. Threads may share it.

    `capture` records the kernels of a batch once, as a CUDA graph; later runs of that shape only replay them. Without
    it, ONNX Runtime has cuDNN plan the kernels of every convolution anew whenever the shape differs from that of the
    run before.

    Args:
        session: of the graph.
        kind: type of its input.
        number: of the GPU.
        memory: allocates the buffers of the host.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        kind: type[np.generic],
        *,
        number: int,
        memory: HostMemory,
    ) -> None:
        self._session = session
        self._kind = kind
        self._number = number
        self._memory = memory
        self._captured: dict[tuple[int, ...], _Buffers] = {}
        self._others: OrderedDict[tuple[int, ...], _Buffers] = OrderedDict()
        self._thread = GraphThread(session)

    def run(
        self, images: Sequence[NDArray[np.float32]], size: int, options: onnxruntime.RunOptions | None
    ) -> NDArray[Any]:
        """Return the outputs; see `Run`."""
        return self._thread.call(lambda: self._run(images, size, options or onnxruntime.RunOptions()))

    def capture(self, images: Sequence[NDArray[np.float32]], size: int) -> None:
        """Record the kernels of batches of this size and shape, and check that they compute the same.

        Args:
            images: different images of equal shape, to compare the results.
            size: size of the batch.

        Raises:
            CaptureError: they do not.
            Exception: the graph cannot be captured, or fails; ONNX Runtime has a class for each of its status codes.
        """
        self._thread.call(lambda: self._capture(images, size))

    def _run(
        self, images: Sequence[NDArray[np.float32]], size: int, options: onnxruntime.RunOptions
    ) -> NDArray[Any]:
        shape = (size, *images[0].shape)
        with DEVICE.used():
            if (captured := self._captured.get(shape)) is not None:
                return captured.run(images, options)
            try:
                return self._run_uncaptured(images, shape, options)
            except Exception as error:  # ONNX Runtime has an exception class for each of its status codes
                if not self._others or not lacks_memory(error):
                    raise
            self._others.clear()  # buffers of other shapes take the memory
            return self._run_uncaptured(images, shape, options)

    def _run_uncaptured(
        self, images: Sequence[NDArray[np.float32]], shape: tuple[int, ...], options: onnxruntime.RunOptions
    ) -> NDArray[Any]:
        # Only put back after success: the device may still use the buffers of a run that was ended.
        buffers = self._others.pop(shape, None) or self._buffers(shape)
        outputs = buffers.run(images, options)
        self._others[shape] = buffers
        if len(self._others) > _KEPT_BUFFERS:
            self._others.popitem(last=False)  # the one that was not used for the longest time
        return outputs

    def _capture(self, images: Sequence[NDArray[np.float32]], size: int) -> None:
        shape = (size, *images[0].shape)
        with DEVICE.used():
            buffers = self._buffers(shape)
            expected = [buffers.run([image], onnxruntime.RunOptions()) for image in images]
        with DEVICE.taken():
            buffers.capture(len(self._captured) + 1)
        with DEVICE.used():
            replayed = [buffers.run([image], onnxruntime.RunOptions()) for image in images]
        if not np.allclose(replayed, expected, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True):
            raise CaptureError(f"the captured kernels of batches of {size} give other outputs.")
        self._captured[shape] = buffers

    def _buffers(self, shape: tuple[int, ...]) -> "_Buffers":
        return _Buffers(self._session, shape, self._kind, self._number, self._memory)


class _Buffers:
    """Buffers of one shape of batches, bound to a session."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        shape: tuple[int, ...],
        kind: type[np.generic],
        number: int,
        memory: HostMemory,
    ) -> None:
        self._session = session
        self._inputs = memory.empty(shape, kind)
        # By the session's allocator, so that the limit of its memory counts the buffer.
        self._on_device = session.create_ortvalue_from_shape_and_type(list(shape), kind, _DEVICE, number)
        self._output_name = session.get_outputs()[0].name
        self._capture_id = _NOT_CAPTURED
        self._binding = session.io_binding()
        # A host array would be copied when it is bound, not when the graph runs.
        self._binding.bind_ortvalue_input(session.get_inputs()[0].name, self._on_device)
        self._binding.bind_output(self._output_name, _DEVICE, number)

    def capture(self, number: int) -> None:
        """Capture the kernels under this number; later runs replay them.

        A run before must have shown the shape of the output.
        """
        # A replay writes to the same place.
        self._binding.bind_ortvalue_output(self._output_name, self._binding.get_outputs()[0])
        self._capture_id = str(number)
        self._compute(onnxruntime.RunOptions())

    def run(self, images: Sequence[NDArray[np.float32]], options: onnxruntime.RunOptions) -> NDArray[Any]:
        fill(self._inputs, images)
        self._on_device.update_inplace(self._inputs)
        self._compute(options)
        return np.array(self._binding.copy_outputs_to_cpu()[0])

    def _compute(self, options: onnxruntime.RunOptions) -> None:
        if options.terminate:  # a replay does not look at it
            raise TimeoutError("the time limit is over")
        options.add_run_config_entry(_CAPTURE_ID, self._capture_id)
        self._session.run_with_iobinding(self._binding, options)
        self._binding.synchronize_outputs()


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
