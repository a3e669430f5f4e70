"""Page-locked host memory: the GPU copies from it directly, without a second copy by the driver."""

import ctypes
import math
import weakref
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.errors import ConfigurationError
from lifelong_service.graphs.libraries import MissingError, runtime_library

_unused: "SimpleQueue[tuple[Any, ctypes.c_void_p]]" = SimpleQueue()
"""Page-locked memory that nothing refers to any more, each with the CUDA runtime that allocated it."""


class HostMemory(Protocol):
    """Allocates arrays in the memory of the host."""

    def empty(self, shape: Sequence[int], kind: type[np.generic]) -> NDArray[Any]:
        """Return an array without values; it owns its memory."""
        ...


class PageLockedMemory:
    """Arrays in page-locked memory, allocated by the CUDA runtime.

    Args:
        device: number of the GPU.
        runtime: the CUDA runtime; None: the one that ONNX Runtime uses.

    Raises:
        ConfigurationError: the CUDA runtime cannot be loaded.
    """

    def __init__(self, device: int, runtime: Any = None) -> None:
        try:
            self._runtime = runtime_library() if runtime is None else runtime
        except MissingError as error:
            raise ConfigurationError(f"{error.reason}.", field="gpu", hint=error.hint) from error
        self._device = device
        self._runtime.cudaHostAlloc.argtypes = (
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_size_t,
            ctypes.c_uint,
        )
        self._runtime.cudaFreeHost.argtypes = (ctypes.c_void_p,)
        self._runtime.cudaGetErrorString.restype = ctypes.c_char_p

    def empty(self, shape: Sequence[int], kind: type[np.generic]) -> NDArray[Any]:
        """Return an array without values; when its last view is gone, the next call frees its memory.

        Raises:
            ConfigurationError: the memory cannot be locked.
        """
        _free_unused()
        size = max(1, math.prod(shape) * np.dtype(kind).itemsize)
        address = ctypes.c_void_p()
        # The device belongs to the thread; otherwise this would occupy memory of GPU 0.
        self._check(self._runtime.cudaSetDevice(self._device))
        self._check(self._runtime.cudaHostAlloc(ctypes.byref(address), size, 0))
        block = (ctypes.c_byte * size).from_address(address.value or 0)
        # Not freed at once: that could be at any time, and would end the capture of another thread.
        weakref.finalize(block, _unused.put, (self._runtime, address)).atexit = False
        return np.frombuffer(memoryview(block), dtype=kind, count=math.prod(shape)).reshape(shape)

    def _check(self, status: int) -> None:
        if status != 0:
            what = self._runtime.cudaGetErrorString(status).decode(errors="replace")
            raise ConfigurationError(
                f"CUDA cannot lock host memory: {what}.",
                field="gpu",
                hint="Free memory of the host, or lower LIFELONG_MAXIMUM_BATCH_SIZE.",
            )


def _free_unused() -> None:
    with suppress(Empty):  # graphs on several threads free the same queue
        while True:
            runtime, unused = _unused.get_nowait()
            runtime.cudaFreeHost(unused)
