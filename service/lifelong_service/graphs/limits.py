"""Limits of graphs: the time of a run, which ONNX Runtime does not limit, and the memory on the CPU."""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import onnxruntime

from lifelong_core.configuration.serving_plan import ServingPlan, worker_memory
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.background import RepeatingThread
from lifelong_service import confinement
from lifelong_service.graphs.providers import CPU

LOOK_SECONDS: Final = 0.25
"""Time between two checks for late runs."""
HANGING_LOOKS: Final = 8
"""Checks that find a run late before it counts as hanging: 2 s. A stopped process makes none."""
_FATAL: Final = 4
"""Least severity that is printed: other messages would break the log format, and show shapes."""
_entries: Final[dict[str, str]] = {}
"""Entries of the options of sessions that share the limited memory; empty: there is no limit."""


@dataclass
class _Run:
    model: str
    ends_at: float
    options: onnxruntime.RunOptions = field(default_factory=onnxruntime.RunOptions)
    late: int = 0
    """Checks that have found it late."""


class RunLimit:
    """Ends runs that take too long; one for all graphs of a process.

    ONNX Runtime checks `terminate` before each operator and in each turn of a loop. A hanging operator is not ended:
    its process has to be.

    Args:
        seconds: time limit of one run.
        note_hanging: called with the model of each run that hangs.

    Attributes:
        failure: why this process has to end: a run hangs. None: none does.
    """

    def __init__(self, seconds: float, note_hanging: Callable[[str], None] = lambda _: None) -> None:
        self.seconds = seconds
        self.failure: str | None = None
        self._note_hanging = note_hanging
        self._running: dict[int, _Run] = {}
        self._changing = threading.Lock()
        self._thread = RepeatingThread("run-limit", self._end_late_runs, seconds=LOOK_SECONDS)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    @contextmanager
    def limit(self, model: str = "") -> Iterator[onnxruntime.RunOptions]:
        """Yield options for runs of a model's graph in the block; `terminate` is set when the time limit is over."""
        run = _Run(model, time.monotonic() + self.seconds)
        run.options.log_severity_level = _FATAL
        with self._changing:
            self._running[id(run)] = run
        try:
            yield run.options
        finally:
            with self._changing:
                del self._running[id(run)]

    def _end_late_runs(self) -> None:
        now = time.monotonic()
        with self._changing:
            late = [run for run in self._running.values() if now >= run.ends_at]
        for run in late:
            run.options.terminate = True
            run.late += 1
            if run.late == HANGING_LOOKS:
                self._note_hanging(run.model)
                self.failure = (
                    f"the model {run.model} hangs: it goes on after its limit of {self.seconds:g} s"
                )


def limit_memory(settings: Settings, plan: ServingPlan) -> None:
    """Limit this process once, before it opens a session.

    A graph that needs more gets an error from ONNX Runtime. Drivers of accelerators map more addresses than the machine
    has memory, so with one there is no limit.

    Args:
        settings: the limits.
        plan: workers of this machine, and whether they use a GPU.
    """
    if plan.uses_gpu or set(settings.execution_providers) - {CPU}:
        return
    memory = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    arena = onnxruntime.OrtArenaCfg({"max_mem": settings.maximum_graph_memory_bytes})
    onnxruntime.create_and_register_allocator(memory, arena)
    _entries["session.use_env_allocators"] = "1"
    _entries["session.use_device_allocator_for_initializers"] = "1"  # weights do not count
    # Not all operators use the arena.
    # The process that checks new graphs has limits of its own.
    confinement.limit(resource.RLIMIT_DATA, worker_memory(settings, plan), may_be_lifted=True)


def share_limited_memory(options: onnxruntime.SessionOptions) -> None:
    """Let a session on the CPU take its memory within the limit, if there is one."""
    for name, value in _entries.items():
        options.add_session_config_entry(name, value)
