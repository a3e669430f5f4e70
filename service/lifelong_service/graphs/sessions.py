"""Sessions of ONNX Runtime: which provider runs a graph, with which options."""

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakSet

import onnxruntime

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.libraries import CUDA, TENSORRT
from lifelong_service.graphs.limits import share_limited_memory
from lifelong_service.graphs.provider_options import provider_options, read_input
from lifelong_service.graphs.providers import (
    CPU,
    FIELD,
    RECORD,
    Choice,
    check_providers,
    choose_providers,
    provider_of,
)
from lifelong_service.graphs.runtime_errors import describe_failure, device_failure, hint_for, lacks_memory

ON_GPU: Final = frozenset({CUDA, TENSORRT})
_ERROR: Final = 3
_FATAL: Final = 4
_RELEASE_SECONDS: Final = 1
"""A graph that nothing refers to any more is released by its own thread, some milliseconds later."""
_open: WeakSet[onnxruntime.InferenceSession] = WeakSet()
"""Sessions of this process that hold memory of the GPU."""


@dataclass(frozen=True)
class OpenSession:
    """A session, and what runs its graph.

    Attributes:
        session: of ONNX Runtime.
        provider: the execution provider that runs most nodes.
        in_use: the providers that ONNX Runtime has started, also where they run few nodes or none.
        unused_gpu: why the CPU runs the graph although CUDA is installed; None: there is nothing to tell.
        uncaptured: why kernels of CUDA cannot be captured; None: they can, or were not to be.
        captures: whether kernels can be captured.
    """

    session: onnxruntime.InferenceSession
    provider: str
    in_use: tuple[str, ...]
    unused_gpu: str | None
    uncaptured: str | None
    captures: bool

    @property
    def is_on_gpu(self) -> bool:
        """Whether the session takes memory of a GPU."""
        return not ON_GPU.isdisjoint(self.in_use)


def open_session(
    graph: Path | bytes,
    *,
    providers: Sequence[str],
    threads: int,
    gpu: GpuUse,
    preprocessing: Preprocessing,
    captures: bool = False,
) -> OpenSession:
    """Load a graph.

    Args:
        graph: file or content of the ONNX model.
        providers: configured execution providers in order of preference; empty: CUDA where it can be started, else the
            CPU.
        threads: threads within one operator; 0: one per core.
        gpu: how this process uses the GPU.
        preprocessing: of its images.
        captures: whether CUDA may capture kernels, where the operators of the graph allow that. Nothing else may be
            captured while a session is opened on a GPU.

    Raises:
        InvalidInputError: the graph cannot be loaded.
        ConfigurationError: a provider is not known, not installed or cannot be started, or runs no node of the graph;
            or the process holds as many graphs on the GPU as may share its memory.
    """
    choice = choose_providers(providers, device=gpu.device)
    if ON_GPU & set(choice.names):
        _check_share(gpu)
        if not _open:
            onnxruntime.set_default_logger_severity(_ERROR)  # it prints why it does not start CUDA
    captures = captures and choice.names[0] == CUDA
    uncaptured = None
    try:
        open_one = partial(_session, graph, choice, threads, gpu, preprocessing)
        session, uncaptured = _capturing(open_one) if captures else (open_one(captures=False), None)
    except _DeviceError as error:
        failure = str(error)
        if providers:
            raise ConfigurationError(
                f"{choice.names[0]} cannot be started: {failure}.",
                field=FIELD,
                hint="Compare the driver with the versions in docs/gpu.md, or change the setting.",
            ) from error
        choice = Choice((CPU,), f"{failure}. Compare the driver with the versions in docs/gpu.md.")
        session = _session(graph, choice, threads, gpu, preprocessing, captures=False)
    in_use = tuple(session.get_providers())
    check_providers(providers, in_use)
    if ON_GPU & set(in_use):
        _open.add(session)
        # From now on it would print a line for each convolution for which cuDNN lacks a fused kernel.
        onnxruntime.set_default_logger_severity(_FATAL)
    unused = choice.unused_gpu
    if CUDA in choice.names and CUDA not in in_use:
        unused = (
            "its libraries and a GPU were found, but ONNX Runtime did not start it; see its message above."
        )
    return OpenSession(
        session,
        provider_of(session, providers),
        in_use,
        unused_gpu=unused,
        uncaptured=uncaptured,
        captures=captures and uncaptured is None and CUDA in in_use,
    )


def is_on_gpu(providers: Sequence[str], gpu: GpuUse) -> bool:
    """Whether `open_session` would try a GPU first.

    Raises:
        ConfigurationError: as `open_session`.
    """
    return bool(ON_GPU & set(choose_providers(providers, device=gpu.device).names))


class _DeviceError(Exception):
    """The GPU cannot be used, whatever the graph."""


def _capturing(
    open_one: Callable[..., onnxruntime.InferenceSession],
) -> tuple[onnxruntime.InferenceSession, str | None]:
    """Open a session that captures kernels, or one that does not; and why it does not."""
    try:
        return open_one(captures=True), None
    except InvalidInputError as error:  # control flow, or operators that CUDA does not know
        if isinstance(error.__cause__, Exception) and lacks_memory(error.__cause__):
            raise
        reason = error.message
    return open_one(captures=False), reason


def _session(
    graph: Path | bytes,
    choice: Choice,
    threads: int,
    gpu: GpuUse,
    preprocessing: Preprocessing,
    *,
    captures: bool,
) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Spinning idle threads would take processor time from the other workers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry(*RECORD)
    share_limited_memory(options)
    # Errors are raised as exceptions. Printed ones would break the log format and show shapes, and with them the
    # content of weights.
    options.log_severity_level = _FATAL
    try:
        described = read_input(graph, preprocessing) if TENSORRT in choice.names else None
        with _building_engines(gpu, is_needed=described is not None):
            return onnxruntime.InferenceSession(
                graph if isinstance(graph, bytes) else str(graph),
                sess_options=options,
                providers=[
                    (name, provider_options(name, gpu, described, captures=captures)) for name in choice.names
                ],
                # Otherwise a failed start, and later a failed run, is silently repeated on the CPU.
                enable_fallback=0,
            )
    except Exception as error:  # ONNX Runtime has an exception class for each of its status codes
        if (failure := device_failure(error)) is not None:
            raise _DeviceError(failure) from error
        raise InvalidInputError(
            f"ONNX Runtime cannot load the graph: {describe_failure(error)}",
            field="onnx",
            hint=hint_for(
                error,
                "Export it as one self-contained ONNX file (weights inside) of an opset that ONNX Runtime knows.",
            ),
        ) from error


@contextmanager
def _building_engines(gpu: GpuUse, *, is_needed: bool) -> Iterator[None]:
    """Let one process after the other build engines: the next one finds them in the folder."""
    if gpu.engines is None or not is_needed:
        yield
        return
    gpu.engines.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (gpu.engines / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_share(gpu: GpuUse) -> None:
    if gpu.graph_bytes is None:
        return
    ends_at = time.monotonic() + _RELEASE_SECONDS
    while len(_open) >= gpu.graphs and time.monotonic() < ends_at:
        time.sleep(0.01)
    if len(_open) >= gpu.graphs:
        raise ConfigurationError(
            f"this worker holds {len(_open)} graphs on the GPU, as many as share its memory.",
            field="LIFELONG_GPU_GRAPHS_PER_WORKER",
            hint="Raise it (every graph then gets less of LIFELONG_GPU_MEMORY_BYTES), or remove unused models.",
        )
