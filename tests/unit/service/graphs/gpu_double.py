"""A machine with a GPU, as ONNX Runtime and the loader of libraries show it; graphs run on the CPU.

The session is ONNX Runtime's own, so that every call has the real interface. The double changes what it must: the
list of providers, the provider of each node, and the place of buffers.
"""

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from lifelong_service.graphs import libraries, sessions
from lifelong_service.graphs.captures import DEVICE

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
CPU = "CPUExecutionProvider"
_REAL_SESSION = onnxruntime.InferenceSession


class Machine:
    """Tells the double what the machine has, and what it was asked for.

    Attributes:
        missing: libraries that are not there.
        driver: highest CUDA version of the driver, as the driver gives it.
        devices: number of GPUs.
        starts: whether ONNX Runtime starts CUDA.
        failure: what ONNX Runtime raises when it starts CUDA; None: nothing.
        providers: providers with options of each session on a GPU.
        placed: device type, device number and shape of every buffer on the device.
        bound_runs: number of runs with bound buffers.
        replayed: for each of them, the number of the captured kernels; -1: none.
        refuses_captures: whether kernels cannot be captured.
        refuses_locks: whether no memory of the host can be locked.
        lacks_captures: whether sessions that capture are refused.
        runs_most_on: the provider of all nodes; None: the first one of the session.
        replays_nothing: whether a replay leaves the outputs as they are.
        locked: shapes in bytes of page-locked memory that is in use, by address.
    """

    def __init__(self) -> None:
        self.missing: set[str] = set()
        self.driver = 13_000
        self.devices = 1
        self.starts = True
        self.failure: str | None = None
        self.providers: list[list[tuple[str, dict[str, Any]]]] = []
        self.placed: list[tuple[str, int, tuple[int, ...]]] = []
        self.bound_runs = 0
        self.replayed: list[str] = []
        self.refuses_captures = False
        self.refuses_locks = False
        self.lacks_captures = False
        self.runs_most_on: str | None = None
        self.replays_nothing = False
        self.plain_runs = 0
        self.locked: dict[int, Any] = {}
        self.current_device: int | None = None

    def load(self, library: str, *_: Any, **__: Any) -> Any:
        """What `ctypes.CDLL` gives for a library."""
        if library in self.missing:
            raise OSError(f"{library}: cannot open shared object file: No such file or directory")
        if library == "libcuda.so.1":
            return SimpleNamespace(
                cuDriverGetVersion=lambda place: _write(place, self.driver),
                cuInit=lambda _: 0 if self.devices else 100,
                cuDeviceGetCount=lambda place: _write(place, self.devices),
            )
        if library.startswith("libcudart.so"):
            return self.runtime()
        return SimpleNamespace()

    def runtime(self) -> SimpleNamespace:
        """The CUDA runtime, with memory of the process in place of page-locked memory."""

        def choose(device: int) -> int:
            self.current_device = device
            return 0 if device < self.devices else 101

        def allocate(place: Any, size: int, flags: int) -> int:
            if self.refuses_locks:
                return 2
            block = ctypes.create_string_buffer(size)
            self.locked[ctypes.addressof(block)] = block
            return _write(place, ctypes.addressof(block))

        def free(address: ctypes.c_void_p) -> int:
            del self.locked[address.value or 0]
            return 0

        def describe(status: int) -> bytes:
            return f"error {status}".encode()

        return SimpleNamespace(
            cudaSetDevice=choose,
            cudaHostAlloc=allocate,
            cudaFreeHost=free,
            cudaGetErrorString=describe,
        )


def _write(place: Any, value: int) -> int:
    place._obj.value = value
    return 0


def install(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Put the double in the place of ONNX Runtime's session and of the loader of libraries."""
    machine = Machine()

    class Session(_REAL_SESSION):
        """Runs on the CPU and says that it runs on the providers that it was given."""

        def __init__(
            self, graph: Any, sess_options: Any = None, providers: Sequence[Any] = (), **arguments: Any
        ) -> None:
            if machine.lacks_captures and any(
                dict(options).get("enable_cuda_graph") for _, options in providers
            ):
                raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : control flow nodes cannot be captured")
            named = [one if isinstance(one, tuple) else (one, {}) for one in providers]
            self.captured: set[str] = set()
            self.is_double = any(name in (CUDA, TENSORRT) for name, _ in named)
            started = [name for name, _ in named if machine.starts or name not in (CUDA, TENSORRT)]
            self.names = started if CPU in started else [*started, CPU]
            if self.is_double:
                machine.providers.append(named)
                assert arguments["enable_fallback"] == 0, "a failed start would be repeated on the CPU"
                if machine.failure is not None:
                    raise RuntimeError(machine.failure)
            super().__init__(graph, sess_options, [CPU], **arguments)

        def get_providers(self) -> Sequence[str]:
            return self.names if self.is_double else super().get_providers()

        def get_provider_graph_assignment_info(self) -> Any:
            name = machine.runs_most_on or self.names[0]
            parts = super().get_provider_graph_assignment_info()
            return [SimpleNamespace(ep_name=name, get_nodes=part.get_nodes) for part in parts]

        def run(self, *arguments: Any, **named: Any) -> Any:
            machine.plain_runs += 1
            return super().run(*arguments, **named)

        def create_ortvalue_from_shape_and_type(
            self,
            shape: Sequence[int],
            element_type: Any,
            device_type: str,
            device_id: int = 0,
            vendor_id: int = -1,
        ) -> Any:
            machine.placed.append((device_type, device_id, tuple(shape)))
            return super().create_ortvalue_from_shape_and_type(shape, element_type, "cpu", 0, vendor_id)

        def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
            machine.bound_runs += 1
            number = run_options.get_run_config_entry("gpu_graph_id")
            is_captured = number in self.captured
            if number != "-1" and not is_captured:
                if machine.refuses_captures:
                    raise RuntimeError("CUDA failure 900: operation not permitted when stream is capturing")
                assert dict(machine.providers[-1])[CUDA]["enable_cuda_graph"] == 1
                self.captured.add(number)
            machine.replayed.append(number)
            if not (is_captured and machine.replays_nothing):
                super().run_with_iobinding(iobinding, run_options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [TENSORRT, CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "cuda_version", "13.0")
    monkeypatch.setattr(libraries, "_preload", lambda: None)
    loads = SimpleNamespace(CDLL=machine.load, c_int=ctypes.c_int, byref=ctypes.byref)
    monkeypatch.setattr(libraries, "ctypes", loads)
    monkeypatch.setattr(sessions, "_open", type(sessions._open)())
    monkeypatch.setattr(DEVICE, "failure", None)
    return machine


def images(count: int, edge: int = 4, channels: int = 1) -> list[np.ndarray]:
    """Random images, NCHW without the batch axis."""
    return list(np.random.default_rng(count).random((count, channels, edge, edge)).astype(np.float32))
