"""Memory of processes over time, and whether it grows."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import psutil

MEGABYTE = 1e6
PARTS = 4
"""The growth is that from the first to the last of so many parts of the time after the warm-up."""


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


def between(samples: Sequence[Sample], begin: float, end: float) -> Sample:
    """Medians of the samples of a stretch of time."""
    found = [one for one in samples if begin <= one.seconds < end]
    if not found:
        raise ValueError(f"no process was weighed between {begin:g} and {end:g} s")
    resident, unique = (
        float(np.median([getattr(one, name) for one in found])) for name in ("resident", "unique")
    )
    return Sample(begin, resident, unique)


def growth(samples: Sequence[Sample], *, after: float, until: float) -> float:
    """Share by which the unique memory has grown between the first and the last part of a stretch of time.

    Args:
        samples: of one process.
        after: seconds; what is before is warm-up.
        until: seconds.
    """
    part = (until - after) / PARTS
    first, last = between(samples, after, after + part), between(samples, until - part, until)
    return last.unique / first.unique - 1
