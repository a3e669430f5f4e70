"""Memory limit of a worker on this machine: that of the settings, or a chosen one."""

from typing import Final

from lifelong_core.runtime.memory import usable_memory
from lifelong_core.serving_plan import ServingPlan
from lifelong_core.settings import Settings

_SHARE: Final = 0.8
"""Share of the memory that all workers together may allocate."""
_LEAST: Final = 2_000_000_000


def worker_memory(settings: Settings, plan: ServingPlan) -> int:
    """Bytes that one of the workers may allocate where graphs run on the CPU."""
    return settings.maximum_worker_memory_bytes or max(_LEAST, int(_SHARE * usable_memory() / plan.workers))
