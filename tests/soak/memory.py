"""Memory of processes over time, and a test of its growth."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import psutil

MEGABYTE = 1e6
PARTS = 4
"""Number of parts of the time after the warm-up; the growth is from the first to the last part."""
KEPT_SHARE = 10
"""Percentile of the samples that measures the kept memory: a cycle temporarily needs more, depending on the size of its
windows and of the summaries of the present hour."""


@dataclass(frozen=True)
class Sample:
    """Memory of one process, or total of several, in megabytes.

    Attributes:
        seconds: time since the load began.
        resident: RSS; shared memory counts in each process.
        unique: USS, and what is swapped out; shared memory does not count.
    """

    seconds: float
    resident: float
    unique: float


def weigh(processes: Sequence[psutil.Process], seconds: float) -> Sample | None:
    """Return the present memory of these processes; None: one of them has ended."""
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        found = [process.memory_full_info() for process in processes]
        unique = sum(one.uss + getattr(one, "swap", 0) for one in found)  # only Linux knows the swapped part
        return Sample(seconds, sum(one.rss for one in found) / MEGABYTE, unique / MEGABYTE)
    return None


def between(samples: Sequence[Sample], begin: float, end: float, *, share: float = 50) -> Sample:
    """Return percentiles (by default medians) of the samples of a period."""
    found = [one for one in samples if begin <= one.seconds < end]
    if not found:
        raise ValueError(f"no process was weighed between {begin:g} and {end:g} s")
    resident, unique = (
        float(np.percentile([getattr(one, name) for one in found], share)) for name in ("resident", "unique")
    )
    return Sample(begin, resident, unique)


def growth(samples: Sequence[Sample], *, after: float, until: float) -> float:
    """Relative growth of the kept unique memory between the first and the last part of a period.

    Args:
        samples: samples of one process.
        after: start of the period in seconds, after the warm-up.
        until: end of the period in seconds.
    """
    part = (until - after) / PARTS
    first = between(samples, after, after + part, share=KEPT_SHARE)
    last = between(samples, until - part, until, share=KEPT_SHARE)
    return last.unique / first.unique - 1
