"""The kinds of jobs, and where their work is done; nothing of it is imported before a subprocess does it."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeAlias

from lifelong_core.store import Job, Store
from lifelong_core.values.errors import InvalidInputError

Work: TypeAlias = Callable[[Store, Job], dict[str, Any]]
"""From the store and a job to its result: JSON values, large ones as digests of artifacts."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "compare": "lifelong_monitor.jobs.compare",
        "cycle": "lifelong_monitor.jobs.cycle",
        "fingerprint": "lifelong_monitor.jobs.fingerprint",
        "labelling_plan": "lifelong_monitor.jobs.labelling_plan",
        "rank": "lifelong_monitor.jobs.rank",
        "replay": "lifelong_monitor.jobs.replay",
        "retrain": "lifelong_monitor.jobs.retrain",
        "search_augmentation": "lifelong_monitor.jobs.search_augmentation",
        "validate": "lifelong_monitor.jobs.validate",
    }
)
"""By kind, the module whose `work` does it."""


def work_of(kind: str) -> Work:
    """What does the work of a kind.

    Raises:
        InvalidInputError: there is no such kind.
    """
    if kind not in KINDS:
        raise InvalidInputError(
            f"this monitor knows no jobs of the kind {kind[:80]!r}.",
            field="kind",
            hint=f"Kinds: {', '.join(KINDS)}. Monitors and service need the same version.",
        )
    return import_module(KINDS[kind]).work
