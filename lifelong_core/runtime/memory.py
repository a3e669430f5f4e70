"""Returns memory to the system that a process has freed and its allocator keeps."""

import ctypes
from collections.abc import Callable
from functools import cache


def give_back_free_memory() -> None:
    """Return freed memory to the system; no effect if the C library is not glibc.

    glibc keeps freed memory, separately for every thread. The call takes some milliseconds.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; Windows
        return None
