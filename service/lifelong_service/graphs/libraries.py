"""What a GPU provider of ONNX Runtime needs, and which part of it is missing.

ONNX Runtime omits a provider that it cannot start, and prints the reason to standard error. So the libraries are loaded
here first. They are those that the provider libraries of the pinned onnxruntime-gpu name (`readelf -d`), and cuDNN.
The provider libraries themselves are left to ONNX Runtime: they must find it initialised.
"""

import contextlib
import ctypes
import functools
import io
import re
from typing import Final

import onnxruntime

CUDA: Final = "CUDAExecutionProvider"
TENSORRT: Final = "TensorrtExecutionProvider"
_CUDNN: Final = "libcudnn.so.9"
"""CUDA starts without it, and then fails on convolutions."""
_DRIVER: Final = "libcuda.so.1"
_TENSORRT_LIBRARIES: Final = ("libnvinfer.so.10", "libnvonnxparser.so.10")
_NOT_FOUND: Final = re.compile(r"^(\S+\.so[.\d]*): cannot open shared object file")
_TENSORRT_SOURCE: Final = (
    "It belongs to TensorRT 10 for CUDA 13: install it and set LD_LIBRARY_PATH to its libraries."
)
_SOURCES: Final = {
    "libcuda.so": "It belongs to the NVIDIA driver (580 or newer): install it, and give containers access to the GPU.",
    "libcudnn": 'It belongs to cuDNN 9: `pip install -c constraints.txt -e ".[gpu]"` in the clone of lifelong, or'
    " install cuDNN and set LD_LIBRARY_PATH.",
    "libnvinfer": _TENSORRT_SOURCE,
    "libnvonnxparser": _TENSORRT_SOURCE,
}
_CUDA_SOURCE: Final = (
    'It belongs to CUDA 13: `pip install -c constraints.txt -e ".[gpu]"` in the clone of lifelong, or install'
    " CUDA and set LD_LIBRARY_PATH."
)


class MissingError(Exception):
    """A part of what a provider needs is missing.

    Attributes:
        reason: what is missing.
        hint: how to install it.
    """

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def check_libraries(provider: str, device: int) -> None:
    """Load the libraries of a GPU provider, and ask the driver for the device; other providers need nothing.

    Args:
        provider: name of an execution provider of this installation.
        device: number of the GPU.

    Raises:
        MissingError: a library, the driver, or the device is missing; the message names it.
    """
    if provider not in (CUDA, TENSORRT):
        return
    _preload()
    for library in _needed(provider):
        _load(library)
    _check_device(device)


def _needed(provider: str) -> list[str]:
    major = _cuda_major()
    libraries = [f"libcublasLt.so.{major}", f"libcublas.so.{major}", f"libcudart.so.{major}", _CUDNN, _DRIVER]
    return [*libraries, *(("libcurand.so.10",) if provider == CUDA else _TENSORRT_LIBRARIES)]


def _cuda_major() -> int:
    """Major version of the CUDA for which ONNX Runtime was built."""
    return int(str(onnxruntime.cuda_version).partition(".")[0])


def runtime_library() -> ctypes.CDLL:
    """The CUDA runtime, of the major version for which ONNX Runtime was built.

    Raises:
        MissingError: it cannot be loaded.
    """
    _preload()
    return _load(f"libcudart.so.{_cuda_major()}")


@functools.cache
def _preload() -> None:
    """Load CUDA and cuDNN from the wheels of NVIDIA, where these are installed, instead of from the library path."""
    with contextlib.redirect_stdout(io.StringIO()):  # failures are found below, with better words
        onnxruntime.preload_dlls()


def _load(library: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(library)
    except OSError as error:
        found = _NOT_FOUND.match(str(error))
        if found is None:
            reason = f"the library {library} cannot be loaded ({error})"
            raise MissingError(reason, "Install the versions that docs/gpu.md names.") from error
        name = found[1]  # the library, or one that it needs
        hint = next((source for start, source in _SOURCES.items() if name.startswith(start)), _CUDA_SOURCE)
        raise MissingError(f"the library {name} is missing", hint) from error


def _check_device(device: int) -> None:
    driver = _load(_DRIVER)
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    if version.value // 1000 < _cuda_major():
        raise MissingError(
            f"the NVIDIA driver supports CUDA {version.value // 1000}.{version.value % 1000 // 10}, and ONNX Runtime"
            f" needs CUDA {_cuda_major()}",
            "Update the driver to 580 or newer.",
        )
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0 or count.value == 0:
        raise MissingError(
            f"the driver shows no GPU (error {status})" if status else "the driver shows no GPU",
            "Check `nvidia-smi`, CUDA_VISIBLE_DEVICES, and whether the container has access to the GPU.",
        )
    if device >= count.value:
        raise MissingError(
            f"there is no GPU {device}, the driver shows {count.value}",
            f"Set LIFELONG_GPU_DEVICE to a number from 0 to {count.value - 1}.",
        )
