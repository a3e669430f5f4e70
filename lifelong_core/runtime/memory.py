"""Memory that a process has freed and its allocator keeps."""

import ctypes
from collections.abc import Callable
from functools import cache


def give_back_free_memory() -> None:
    """Give memory that was freed back to the system; does nothing where the C library is not glibc.

    glibc keeps what was freed, in every thread by itself. It takes some milliseconds.
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
