"""Memory of processes over time, and a test of its growth."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import psutil

MEGABYTE = 1e6
PARTS = 4
"""The growth is that from the first to the last of so many parts of the time after the warm-up."""
KEPT_SHARE = 10
"""Percentile of the samples that tells what a process keeps: a cycle needs more for a moment, the more the larger its
windows and the summaries of the present hour are, and gives it back."""


@dataclass(frozen=True)
class Sample:
    """Memory of one process or of several together, in megabytes.

    Attributes:
        seconds: since the load began.
        resident: RSS; what processes share counts in each.
        unique: USS; what they share does not count.
    """

    seconds: float
    resident: float
    unique: float


def weigh(processes: Sequence[psutil.Process], seconds: float) -> Sample | None:
    """The memory of these processes now; None: one of them has ended."""
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        found = [process.memory_full_info() for process in processes]
        return Sample(
            seconds, sum(one.rss for one in found) / MEGABYTE, sum(one.uss for one in found) / MEGABYTE
        )
    return None


def between(samples: Sequence[Sample], begin: float, end: float, *, share: float = 50) -> Sample:
    """Percentiles, as a rule medians, of the samples of a stretch of time."""
    found = [one for one in samples if begin <= one.seconds < end]
    if not found:
        raise ValueError(f"no process was weighed between {begin:g} and {end:g} s")
    resident, unique = (
        float(np.percentile([getattr(one, name) for one in found], share)) for name in ("resident", "unique")
    )
    return Sample(begin, resident, unique)


def growth(samples: Sequence[Sample], *, after: float, until: float) -> float:
    """Share by which the unique memory that is kept has grown between the first and the last part of a stretch of time.

    Args:
        samples: of one process.
        after: seconds; what is before is warm-up.
        until: seconds.
    """
    part = (until - after) / PARTS
    first = between(samples, after, after + part, share=KEPT_SHARE)
    last = between(samples, until - part, until, share=KEPT_SHARE)
    return last.unique / first.unique - 1
