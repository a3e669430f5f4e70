"""How many workers serve on this machine; how many threads and how much memory each of them has for graphs."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.runtime.memory import usable_memory

FEWEST_WORKERS: Final = 2
"""With only one worker, its death is an outage of 10 s."""
MOST_WORKERS: Final = 8
"""Every worker holds a copy of the models and connections to the database."""
MOST_GPU_WORKERS: Final = 4
"""Workers that share a GPU: each takes memory of it, and a few keep it busy."""
IDLE_SHARE: Final = 1 / 8
"""Largest share of the cores that may be idle for the sake of more workers."""
_GPU_PROVIDERS: Final = ("CUDAExecutionProvider", "TensorrtExecutionProvider")

_MEMORY_SHARE: Final = 0.8
"""Share of the memory that all workers together may allocate."""
_LEAST_MEMORY: Final = 2_000_000_000


@dataclass(frozen=True)
class ServingPlan:
    """Workers and threads of the service.

    Attributes:
        cores: number of cores that the service may use.
        workers: number of serving processes.
        threads: number of ONNX Runtime threads of each worker.
        uses_gpu: whether graphs are expected to run on a GPU.
    """

    cores: int
    workers: int
    threads: int
    uses_gpu: bool = False

    @property
    def oversubscribes(self) -> bool:
        """Whether the threads are more than the cores; two workers with one thread each may share one core."""
        return self.workers * self.threads > max(self.cores, FEWEST_WORKERS)

    @property
    def leaves_half_idle(self) -> bool:
        """Whether graphs cannot use half of the cores; on a GPU they need none."""
        return not self.uses_gpu and 2 * self.workers * self.threads <= self.cores

    @property
    def decoding_threads(self) -> int:
        """Threads of each worker that decode images beside its graph."""
        return max(1, self.cores // self.workers)

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        workers = (
            f"1 worker with {threads}" if self.workers == 1 else f"{self.workers} workers with {threads} each"
        )
        return f"{workers} on {self.cores} core{'' if self.cores == 1 else 's'}"


def plan_serving(
    cores: int, *, workers: int | None = None, threads: int | None = None, uses_gpu: bool = False
) -> ServingPlan:
    """Choose workers and threads so that graphs use the cores.

    Without given numbers there are two to eight workers: as many as leave at most an eighth of the cores idle. Their
    threads never outnumber the cores, except on a single core, where two workers take turns. With a GPU there are two
    to four workers; their threads run the nodes that the GPU does not, and whole graphs if it cannot be started.

    Args:
        cores: number of cores that the service may use, at least 1.
        workers: a given number of workers; the threads share the cores among them. None: chosen.
        threads: a given number of threads of each worker; the workers share the cores. None: chosen.
        uses_gpu: whether graphs are expected to run on a GPU.

    Examples:
        >>> print(plan_serving(2))
        2 workers with 1 thread each on 2 cores
        >>> print(plan_serving(11))
        5 workers with 2 threads each on 11 cores
        >>> print(plan_serving(16, workers=4))
        4 workers with 4 threads each on 16 cores
    """
    if workers is None:
        workers = _workers(cores, threads, uses_gpu=uses_gpu)
    if threads is None:
        threads = max(1, cores // workers)
    return ServingPlan(cores, workers, threads, uses_gpu)


def serving_plan(settings: Settings) -> ServingPlan:
    """Return the workers and threads of a service with these settings on this machine."""
    return plan_serving(
        usable_cores(),
        workers=settings.workers,
        threads=settings.intra_op_threads,
        uses_gpu=expects_gpu(settings.execution_providers),
    )


def expects_gpu(configured: Sequence[str], devices: Path = Path("/dev")) -> bool:
    """Whether graphs are expected to run on a GPU, found out without loading ONNX Runtime.

    Args:
        configured: execution providers in the settings; empty: CUDA if it is installed and the machine has a GPU.
        devices: folder of the devices.
    """
    if configured:
        return any(name in _GPU_PROVIDERS for name in configured)
    return (devices / "nvidiactl").exists() and _has_cuda_provider()


def _has_cuda_provider() -> bool:
    found = importlib.util.find_spec("onnxruntime")
    folders = found.submodule_search_locations if found is not None else None
    return any(Path(one, "capi", "libonnxruntime_providers_cuda.so").exists() for one in folders or ())


def _workers(cores: int, threads: int | None, *, uses_gpu: bool) -> int:
    if uses_gpu:
        return min(max(cores, FEWEST_WORKERS), MOST_GPU_WORKERS)
    if threads is not None:
        return min(max(cores // threads, FEWEST_WORKERS), MOST_WORKERS)
    counts = range(min(cores, MOST_WORKERS), FEWEST_WORKERS, -1)
    return next((count for count in counts if cores % count <= IDLE_SHARE * cores), FEWEST_WORKERS)


def worker_memory(settings: Settings, plan: ServingPlan) -> int:
    """Bytes that one of the workers may allocate where graphs run on the CPU."""
    return settings.maximum_worker_memory_bytes or max(
        _LEAST_MEMORY, int(_MEMORY_SHARE * usable_memory() / plan.workers)
    )
