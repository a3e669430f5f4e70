"""Memory limits of a serving process whose graphs run on the CPU: of the graphs, and of the whole process."""

import resource
from typing import Final

import onnxruntime

from lifelong_core.configuration.serving_plan import ServingPlan, worker_memory
from lifelong_core.configuration.settings import Settings
from lifelong_service.graphs.providers import CPU
from lifelong_service.process import confinement

_entries: Final[dict[str, str]] = {}
"""Entries of the options of sessions that share the limited memory; empty: there is no limit."""


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
