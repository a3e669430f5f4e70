"""Returns memory to the system that a process has freed and its allocator keeps, or keeps it."""

import ctypes
from collections.abc import Callable
from functools import cache

_TRIM_THRESHOLD, _NO_MAPPINGS = -1, -4
"""M_TRIM_THRESHOLD and M_MMAP_MAX of glibc's malloc.h"""


def give_back_free_memory() -> None:
    """Return freed memory to the system; no effect if the C library is not glibc.

    glibc keeps freed memory, separately for every thread. The call takes some milliseconds.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


def keep_free_memory() -> None:
    """Keep freed memory for the next array, for a process with one large task; no effect if the C library is not glibc.

    Otherwise each large array comes from the system, which clears its pages: with 1,000 classes, a fifth of the
    processor time of `adapt`.
    """
    if _trim() is not None:
        library = ctypes.CDLL(None)
        library.mallopt(_NO_MAPPINGS, 0)
        library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; Windows
        return None
